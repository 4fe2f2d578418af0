"""Archives of Java's classes: when one is used, what it is named by, and how one is written."""

import os
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.jars.class_archive import (
    KEPT_FOR_EACH_NAME,
    class_archive,
    is_trusted,
    options_to_use,
    written_archive,
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "class-archives"


@pytest.fixture
def jars(tmp_path: Path) -> list[Path]:
    made = [tmp_path / "java", tmp_path / "a.jar", tmp_path / "b.jar"]
    for path in made:
        path.write_bytes(b"x")
    return made


def archive_of(jars: list[Path]) -> Path:
    return class_archive("spark", str(jars[0]), jars[1:])


def written(archive: Path, content: bytes = b"classes") -> Path:
    with written_archive(archive) as partial:
        partial.write_bytes(content)
    return archive


def test_java_is_told_of_an_archive_that_is_there(cache: Path, jars: list[Path]) -> None:
    """Without one it is told nothing, and starts as before."""
    archive = archive_of(jars)
    assert archive.parent == cache
    assert options_to_use(archive) == []
    written(archive)
    assert options_to_use(archive)[0] == f"-XX:SharedArchiveFile={archive}"


@pytest.mark.usefixtures("cache")
def test_another_java_or_another_jar_has_another_archive(jars: list[Path]) -> None:
    """An upgrade never meets the archive of what was there before."""
    before = archive_of(jars)
    assert archive_of(jars) == before
    for path in jars:
        path.write_bytes(b"another")
        assert archive_of(jars) != before
        before = archive_of(jars)


@pytest.mark.usefixtures("cache")
def test_what_others_can_write_is_not_used(jars: list[Path]) -> None:
    """An archive is code that runs."""
    archive = written(archive_of(jars))
    assert is_trusted(archive)
    for mode in (0o620, 0o602):
        archive.chmod(mode)
        assert not is_trusted(archive)
    archive.chmod(0o600)
    link = archive.with_name("link.jsa")
    link.symlink_to(archive)
    assert not is_trusted(link)
    assert not is_trusted(archive.parent)


@pytest.mark.usefixtures("cache")
def test_what_another_user_wrote_is_not_used(
    jars: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless that was root."""
    archive = written(archive_of(jars))
    owner = archive.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert is_trusted(archive) == (owner == 0)  # root may write anything anyway


@pytest.mark.usefixtures("cache")
def test_a_half_written_archive_is_never_seen(jars: list[Path]) -> None:
    """It gets its name when Java has ended; one that is not written at all is an error."""
    archive = archive_of(jars)
    with pytest.raises(FileNotFoundError), written_archive(archive) as partial:
        os.truncate(partial.with_name("nothing"), partial.write_bytes(b"half"))
    assert list(archive.parent.iterdir()) == []
    with pytest.raises(PenstockError, match="wrote no class archive"), written_archive(archive):
        pass


def test_a_few_archives_of_other_jars_are_kept(cache: Path, jars: list[Path]) -> None:
    """Each takes 200 MB, so the oldest go; those of another name stay."""
    cache.mkdir(parents=True)
    (cache / "broker-0.jsa").write_bytes(b"x")
    for age_s in range(KEPT_FOR_EACH_NAME + 2):
        former = cache / f"spark-{age_s}.jsa"
        former.write_bytes(b"x")
        os.utime(former, (1_000_000 - age_s, 1_000_000 - age_s))
    archive = written(archive_of(jars))
    expected = {archive.name, "broker-0.jsa", "spark-0.jsa", "spark-1.jsa"}
    assert {one.name for one in cache.iterdir()} == expected
