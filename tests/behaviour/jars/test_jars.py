"""Jars are fetched once, verified at every use, and complete or absent.

The tests run the real Ivy against a small repository on the loopback.
"""

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.jars import JarSet, LockFile, classpath, fetch, jar_paths, locked_jars
from penstock.jars import lock as lock_file
from penstock.jars.cache import JarCorruptError, JarsMissingError, cache_directory, set_directory
from penstock.jars.fetch import FetchProgress, JarFetchError
from penstock.jars.java import JavaMissingError, find_java, java_version
from penstock.jars.lock import LockedJar

UNCHANGED_LOCK_TEXT = lock_file.lock_text
CONTENT = {"alpha": b"first jar", "beta": b"second jar"}


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository on loopback with two jars, a lock that names them, and an empty cache."""
    root = tmp_path / "repository"
    for name, content in CONTENT.items():
        folder = root / "org" / "example" / name / "1.0"
        folder.mkdir(parents=True)
        (folder / f"{name}-1.0.jar").write_bytes(content)
    lines = [f"org.example:{n}:1.0 sha256:{sha256(c).hexdigest()}" for n, c in CONTENT.items()]
    monkeypatch.setattr(lock_file, "lock_text", lambda _: "# two jars\n" + "\n".join(lines))
    handler = functools.partial(QuietHandler, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("PENSTOCK_JAR_REPOSITORY", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
        yield root
        server.shutdown()


def leftovers() -> list[str]:
    folder = cache_directory() / "jars"
    return [one.name for one in folder.iterdir() if not one.name.endswith(".lock")]


def test_fetched_once_with_progress_then_never_again(repository: Path) -> None:
    """The second fetch works without the repository."""
    seen: list[FetchProgress] = []
    target = fetch(JarSet.BROKER, on_progress=seen.append)
    assert [one.arrived for one in seen] == [1, 2]
    assert sorted(path.name for path in target.iterdir()) == ["alpha-1.0.jar", "beta-1.0.jar"]
    shutil.rmtree(repository)
    again: list[FetchProgress] = []
    assert fetch(JarSet.BROKER, on_progress=again.append) == target
    assert again == []
    assert classpath(JarSet.BROKER) == os.pathsep.join(str(p) for p in jar_paths(JarSet.BROKER))
    assert leftovers() == [target.name]


def test_jars_on_a_read_only_disk_are_only_looked_at(repository: Path) -> None:
    """Nothing, not even a lock file, is written beside a complete set."""
    folder = fetch(JarSet.BROKER)
    for lock in folder.parent.glob(".*.lock"):
        lock.unlink()
    assert fetch(JarSet.BROKER) == folder
    assert list(folder.parent.iterdir()) == [folder]


def test_a_wrong_sum_keeps_nothing(repository: Path) -> None:
    """A jar with a wrong checksum is refused, and the cache stays empty."""
    (repository / "org/example/beta/1.0/beta-1.0.jar").write_bytes(b"something else")
    with pytest.raises(JarCorruptError, match=r"beta-1\.0\.jar arrived with a sha256 checksum"):
        fetch(JarSet.BROKER)
    assert leftovers() == []


def test_a_missing_jar_is_tried_again_and_then_named(repository: Path) -> None:
    """After all attempts a missing jar is named with a remedy."""
    (repository / "org/example/beta/1.0/beta-1.0.jar").unlink()
    with pytest.raises(JarFetchError, match=r"Could not fetch beta-1\.0\.jar in 2 attempts"):
        fetch(JarSet.BROKER, attempts=2)
    assert leftovers() == []


def test_a_second_attempt_can_succeed(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository that fails once is tried again."""
    jar = repository / "org/example/beta/1.0/beta-1.0.jar"
    jar.rename(tmp_path / "hidden")

    original = QuietHandler.send_error

    def fail_once(self: QuietHandler, code: int, *rest: object, **named: object) -> None:
        original(self, code)
        if not jar.exists() and "beta" in self.path and self.path.endswith(".jar"):
            (tmp_path / "hidden").rename(jar)

    monkeypatch.setattr(QuietHandler, "send_error", fail_once)
    seen: list[FetchProgress] = []
    target = fetch(JarSet.BROKER, on_progress=seen.append)
    assert (target / "beta-1.0.jar").read_bytes() == CONTENT["beta"]
    assert seen[-1].attempt == 2


def test_no_network_is_one_clear_error(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a repository the error has a remedy, and nothing is kept."""
    monkeypatch.setenv("PENSTOCK_JAR_REPOSITORY", "http://127.0.0.1:9/")
    with pytest.raises(JarFetchError, match="Check the network"):
        fetch(JarSet.BROKER, attempts=1)
    assert leftovers() == []


def test_a_full_disk_is_seen_before_the_fetch(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too little free space is reported in MiB with the folder."""
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=5 * 2**20))
    with pytest.raises(JarFetchError, match="Only 5 MiB are free"):
        fetch(JarSet.BROKER)


def test_a_cache_that_cannot_be_written_is_named(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache that cannot be written is named in the error."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "file"))
    with pytest.raises(JarFetchError, match="Could not write the jar cache"):
        fetch(JarSet.BROKER)


def test_a_corrupted_cache_is_refused_and_mended(repository: Path) -> None:
    """A jar that changed on disk is refused, and fetching again replaces it."""
    target = fetch(JarSet.BROKER)
    (target / "alpha-1.0.jar").write_bytes(b"bit rot")
    with pytest.raises(JarCorruptError, match=r"alpha-1\.0\.jar.*it is not used"):
        jar_paths(JarSet.BROKER)
    fetch(JarSet.BROKER)
    assert jar_paths(JarSet.BROKER)[0].read_bytes() == CONTENT["alpha"]
    assert leftovers() == [target.name]


def test_missing_jars_are_an_error_with_the_command(repository: Path) -> None:
    """The error names the command that fetches the jars."""
    with pytest.raises(JarsMissingError, match="penstock jars fetch"):
        jar_paths(JarSet.SPARK)


def test_another_lock_has_another_folder(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed lock uses another folder of the cache."""
    before = set_directory(JarSet.BROKER)
    monkeypatch.setattr(lock_file, "lock_text", lambda _: f"a:b:1 sha256:{'0' * 64}")
    assert set_directory(JarSet.BROKER) != before


def test_a_lock_outside_the_package_is_kept_in_the_same_way(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its jars are verified, and their folder is named after the file; no command knows it."""
    monkeypatch.setattr(lock_file, "lock_text", UNCHANGED_LOCK_TEXT)
    line = f"org.example:beta:1.0 sha256:{sha256(CONTENT['beta']).hexdigest()}"
    (tmp_path / "extra.lock").write_text(f"# one jar\n{line}\n", encoding="utf-8")
    extra = LockFile(tmp_path / "extra.lock")
    folder = fetch(extra)
    assert folder == set_directory(extra)
    assert folder.name.startswith("extra-")
    assert [jar.name for jar in folder.glob("*.jar")] == ["beta-1.0.jar"]
    assert "extra" not in list(JarSet)
    (tmp_path / "extra.lock").write_text(line.replace("sha256:", "sha256:0")[:-1], encoding="utf-8")
    with pytest.raises(JarCorruptError):
        fetch(extra)


def test_the_committed_locks_are_sound() -> None:
    """Both sets parse, name Kafka 4.3.1 and the connector, and share no classpath version."""
    broker = {jar.artifact: jar.version for jar in locked_jars(JarSet.BROKER)}
    spark = {jar.artifact: jar.version for jar in locked_jars(JarSet.SPARK)}
    assert broker["kafka_2.13"] == "4.3.1"
    assert spark["spark-sql-kafka-0-10_2.13"] == "4.2.0"
    assert spark["kafka-clients"] != broker["kafka-clients"]


@pytest.mark.parametrize(
    "line", ["a:b:1", "a:b:1 sha256:xyz", "a b c", "../x:b:1 sha256:" + "0" * 64]
)
def test_a_malformed_lock_line_is_refused(line: str) -> None:
    """A lock that cannot be read is an error, never an empty set."""
    with pytest.raises(ValueError, match="not group:artifact:version"):
        LockedJar.parse(line)


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_java_versions_are_read(banner: str, version: int | None) -> None:
    """Versions are read in the old and the new format."""
    assert java_version(banner) == version


@pytest.mark.parametrize(
    ("banner", "explanation"), [('openjdk version "11.0.2"', "is Java 11"), ("hello", "no version")]
)
def test_a_java_too_old_is_refused_with_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, banner: str, explanation: str
) -> None:
    """The error names the version found and the install command."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{banner}' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissingError, match=explanation) as raised:
        find_java()
    assert "apt-get install -y openjdk-17-jre-headless" in raised.value.remedy


def test_no_java_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error says whether it looked on the PATH or in JAVA_HOME."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissingError, match="on the PATH"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PenstockError, match="in JAVA_HOME"):
        find_java()
