"""One holder, a state that is complete or ignored, and a start that never fails."""

import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.state_directory import (
    BrokenState,
    DirectoryTakenError,
    StateDirectory,
    decode_state,
    encode_state,
)

CONTENT = {"incarnation": 7, "state": "running"}


def test_what_is_written_is_read_by_the_next_holder(tmp_path: Path) -> None:
    """The next holder reads the whole state; the file is private, and nothing else is left."""
    place = tmp_path / "deep" / "consumer-1"
    with StateDirectory(place, "g/consumer-1") as held:
        assert held.read() is None
        assert held.write({"old": 1})
        assert held.write(CONTENT)
    with StateDirectory(place, "g/consumer-1") as held:
        assert held.read() == CONTENT
    assert sorted(one.name for one in place.iterdir()) == ["lock", "state"]
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE((place / "state").stat().st_mode) == 0o600


def test_a_second_process_gets_an_error_with_the_holder(tmp_path: Path) -> None:
    """A second process gets an error that names the holder, until the holder ends."""
    code = (
        "import sys; from pathlib import Path; from penstock.state_directory import StateDirectory;"
        "StateDirectory(Path(sys.argv[1]), 'o').open(); print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(DirectoryTakenError, match=f"process {holder.pid}"):
            StateDirectory(tmp_path, "o").open()
        holder.kill()
    with StateDirectory(tmp_path, "o") as held:
        assert held.unusable is None


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda _: b"", "not a state file"),
        (lambda data: data[:40], "not a state file"),
        (lambda data: data[:-9], "checksum"),
        (lambda data: data.replace(b"running", b"runninG"), "checksum"),
        (lambda data: data.replace(b" 1 ", b" 2 ", 1), "version '2'"),
        (lambda data: data.replace(b"consumer-1", b"consumer-2", 1), "belongs to"),
        (lambda _: os.urandom(200).replace(b"\n", b"") + b"\nx", "not a state file"),
        (lambda _: b"x" * (9 * 2**20), "larger"),
    ],
)
def test_a_state_that_is_not_whole_or_not_ours_is_named_and_ignored(
    spoil: Callable[[bytes], bytes], why: str
) -> None:
    """Each kind of damage is ignored with its own reason."""
    read = decode_state("g/consumer-1", spoil(encode_state("g/consumer-1", CONTENT)))
    assert isinstance(read, BrokenState)
    assert why in read.why


def test_a_state_that_is_no_mapping_is_no_state() -> None:
    """Content that is not a mapping is no state, even with a right checksum."""
    whole = encode_state("o", [1])  # type: ignore[arg-type] # what a stranger might write
    assert isinstance(decode_state("o", whole), BrokenState)


def test_no_link_is_followed(tmp_path: Path) -> None:
    """A link in place of the state is neither read nor written through."""
    victim = tmp_path / "victim"
    victim.write_bytes(encode_state("o", CONTENT))
    place = tmp_path / "state-directory"
    place.mkdir()
    (place / "state").symlink_to(victim)
    (place / "state.partial").symlink_to(victim)
    before = victim.read_bytes()
    with StateDirectory(place, "o") as held:
        assert isinstance(held.read(), BrokenState)
        assert held.write({"mine": 1})
        assert held.read() == {"mine": 1}
    assert victim.read_bytes() == before
    (tmp_path / "link").symlink_to(place)
    linked = StateDirectory(tmp_path / "link", "o")
    linked.open()
    assert linked.unusable is not None


def test_a_pipe_in_the_states_place_does_not_hang_the_start(tmp_path: Path) -> None:
    """A pipe in place of the state does not block the start."""
    os.mkfifo(tmp_path / "state")
    with StateDirectory(tmp_path, "o") as held:
        assert isinstance(held.read(), BrokenState)


def test_an_unusable_directory_is_no_error(tmp_path: Path) -> None:
    """An unusable directory gives a reason and no error."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with StateDirectory(tmp_path / "file" / "consumer-1", "o") as held:
        assert held.unusable is not None
        assert isinstance(held.read(), BrokenState)
        assert not held.write(CONTENT)


def test_a_failed_write_keeps_the_old_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed write the old state stays, and the next write succeeds."""
    with StateDirectory(tmp_path, "o") as held:
        assert held.write({"good": 1})

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            assert not held.write({"bad": 1})
            assert held.unusable is not None
            assert "No space" in held.unusable
        assert held.read() == {"good": 1}
        assert held.write({"good": 2})
        assert held.read() == {"good": 2}
        assert held.unusable is None


def test_a_holder_that_is_about_to_end_is_waited_for(tmp_path: Path) -> None:
    """A holder is waited for up to the limit, or until the wait is cancelled."""
    first = StateDirectory(tmp_path, "o")
    first.open()
    begun_s = time.monotonic()
    with pytest.raises(DirectoryTakenError):
        StateDirectory(tmp_path, "o", wait_s=0.3).open()
    assert 0.3 <= time.monotonic() - begun_s < 5
    with pytest.raises(DirectoryTakenError):
        StateDirectory(tmp_path, "o", wait_s=60, is_given_up=lambda: True).open()
    ending = threading.Timer(0.3, first.close)
    ending.start()
    with StateDirectory(tmp_path, "o", wait_s=60) as second:
        assert second.write(CONTENT)
    ending.join()
