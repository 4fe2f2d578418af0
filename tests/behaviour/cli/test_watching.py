"""`penstock status --watch`: the live view, and the lines where there is no terminal."""

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from kit.controller.story import TWO_CONSUMERS, after
from kit.controller.story_state import state_of
from penstock.cli import watching
from penstock.cli.group_status import StatusSource
from penstock.cli.live_view import live_view
from penstock.cli.watching import ChangesInLines
from penstock.controller.core.snapshot import snapshot
from penstock.errors import PenstockError

OVERLOADED = (
    *TWO_CONSUMERS,
    "3000 ms pass",
    "speeds orders-0=40 orders-1=80 orders-2=10",
    "consumer 1 reports orders-0@1.1 orders-1@1.2, behind_log_bytes=65 behind_records=13",
    "tick +500",
    "packed 1: orders-0; 2: orders-1 orders-2",
)


def seen(*lines: str, **more: object) -> dict[str, Any]:
    found = snapshot(state_of(after(*lines)), round(time.time() * 1000), is_degraded=False)
    return found | {"age_s": 0.3, "is_stale": False, "source": "kafka", "group": "penstock", **more}


def shown(found: dict[str, Any], *, width: int = 80, height: int = 30) -> str:
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(live_view(found, width=width, height=height, carried_bytes_per_s=118.0))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_view_fits_80_columns_and_has_no_colour_codes_elsewhere() -> None:
    """All that matters is there, and no line is longer than the terminal."""
    text = shown(seen(*OVERLOADED))
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "\x1b" not in text
    for expected in (
        "130 B/s to 3 partitions of 1 topic",
        "about 118 B/s",
        "2 needed, 2 ready, 0 starting, 0 ending",
        "13 records, as much as is written in 0.5 s",
        "120 of 100 B/s",
        "moving 1 partition: orders-1 1→2",
        "consumer 1 is over capacity",
        "seen 0.3 s ago in Kafka",
    ):
        assert expected in text, expected


def test_bars_are_filled_by_partitions_up_to_the_target() -> None:
    """80 of 100 in 32 columns, each partition with its own pattern; the target is marked."""
    found = seen(*TWO_CONSUMERS, target_utilisation=0.9)
    text = shown(found)
    assert "█" * 13 + "▓" * 13 + "···┊··" in text
    assert "all is well" in text


def test_a_small_screen_shows_the_fullest_consumers() -> None:
    """The others are counted."""
    found = seen(*TWO_CONSUMERS)
    one = found["consumers"][0]
    found["consumers"] = [
        one | {"consumer": number, "load_bytes_per_s": float(number)} for number in range(1, 41)
    ]
    text = shown(found, height=24)
    assert re.search(r"^40 █", text, re.MULTILINE)
    assert not re.search(r"^ ?1 █", text, re.MULTILINE)
    assert re.search(r"and 3\d consumers with less load", text)


def test_a_silent_controller_is_called_silent() -> None:
    """What was known then is shown below."""
    text = " ".join(shown(seen(*TWO_CONSUMERS, age_s=200.0)).split())
    assert "The controller has not reported for 3 min. What was known then:" in text


def test_lines_are_printed_for_changes_only() -> None:
    """A new decision and a new condition are told once; figures that change are not."""
    lines: list[str] = []
    changes = ChangesInLines(lines.append)
    calm = seen(*TWO_CONSUMERS)
    changes.show(calm)
    changes.show(calm | {"written_bytes_per_s": 121.0})
    (first,) = lines
    assert re.match(r"\d\d:\d\d:\d\d 120 B/s written; 2 needed, 2 ready", first)
    assert first.endswith("all is well")
    changes.show(seen(*OVERLOADED))
    assert any("consumer 1 is over capacity: 120 of 100 B/s" in line for line in lines[1:])
    told = len(lines)
    changes.show(calm | {"is_stale": True, "age_s": 60.0, "history": []})
    assert lines[told:][-1].endswith("The controller has not reported for 60 s.")


def test_a_backlog_that_is_gone_is_a_change() -> None:
    """The last line was that the group catches up, for minutes after it had caught up."""
    lines: list[str] = []
    changes = ChangesInLines(lines.append)
    calm = seen(*TWO_CONSUMERS, carried_bytes_per_s=500.0)
    catching_up = {"backlog": {"trend": "shrinking", "over_s": 30.0, "left_s": 40.0}}
    changes.show(calm | catching_up)
    changes.show(calm | {"backlog": {"trend": "shrinking", "over_s": 30.0, "left_s": 39.0}})
    changes.show(calm)
    assert [line.rpartition("; ")[2] for line in lines] == [
        "catching up: 500 B/s carried, about 40 s left",
        "all is well",
    ]


def _watching(folder: Path, *options: str, **streams: Any) -> subprocess.Popen[bytes]:
    where = ["--set", f"controller.directory={folder}"]
    command = [sys.executable, "-m", "penstock", "status", "--watch", *where, *options]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    return subprocess.Popen(command, env=environment, **streams)


def test_ctrl_c_ends_the_view_on_a_terminal(tmp_path: Path) -> None:
    """It has drawn the group by then, in colour, and ends with exit code 0 and a shown cursor."""
    later = seen(*TWO_CONSUMERS, at_unix_ms=round(time.time() * 1000) + 60_000)
    (tmp_path / "status.json").write_text(json.dumps(later), encoding="utf-8")
    ours, theirs = pty.openpty()
    process = _watching(tmp_path, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    output = b""
    try:
        deadline_s = time.monotonic() + 60
        while b"backlog" not in output or "█".encode() not in output:
            assert time.monotonic() < deadline_s, output
            if select.select([ours], [], [], 1.0)[0]:
                output += os.read(ours, 65_536)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        while select.select([ours], [], [], 0.5)[0]:
            try:
                output += os.read(ours, 65_536)
            except OSError:  # the other side is closed
                break
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert b"\x1b[3" in output
    assert output.rfind(b"\x1b[?25h") > output.rfind(b"\x1b[?25l")
    assert b"Traceback" not in output


def test_json_is_one_status_on_each_line(tmp_path: Path) -> None:
    """Each new one, and no colour."""
    later = seen(*TWO_CONSUMERS, at_unix_ms=round(time.time() * 1000) + 60_000)
    file = tmp_path / "status.json"
    file.write_text(json.dumps(later), encoding="utf-8")
    with _watching(tmp_path, "-o", "json", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            first = json.loads(process.stdout.readline())
            later["at_unix_ms"] += 1
            file.with_suffix(".new").write_text(json.dumps(later), encoding="utf-8")
            file.with_suffix(".new").replace(file)
            second = json.loads(process.stdout.readline())
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        finally:
            process.kill()
    assert second["at_unix_ms"] == first["at_unix_ms"] + 1


def test_a_fault_that_lasts_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And again when it comes back after good news."""
    calm, away = seen(*TWO_CONSUMERS), PenstockError("No broker answers.")
    answers = iter([calm, away, away, away, calm, away, None])

    class Source:
        def read(self) -> dict[str, Any]:
            answer = next(answers)
            if answer is None:
                raise KeyboardInterrupt
            if isinstance(answer, PenstockError):
                raise answer
            return answer

    monkeypatch.setattr(watching, "LOOK_EVERY_S", 0)
    shown_statuses: list[dict[str, Any]] = []
    with pytest.raises(KeyboardInterrupt):
        watching._each_status(cast("StatusSource", Source()), shown_statuses.append)
    assert capsys.readouterr().err == "No broker answers.\n" * 2
    assert len(shown_statuses) == 1


def test_yaml_is_not_watched(tmp_path: Path) -> None:
    """It says what there is instead."""
    with _watching(tmp_path, "-o", "yaml", stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert b"with `-o json` a status on each line" in process.stderr.read()
    assert process.returncode == 2


@pytest.mark.parametrize("count", [0, 1])
def test_a_group_without_consumers_can_be_shown(count: int) -> None:
    """Right after its start there is neither a speed nor a consumer."""
    text = shown(seen("a controller starts with epoch 1", age_s=float(count)))
    assert "no consumer yet" in text
    assert "? needed" in text
