"""Class archives: Java keeps the classes of a server as it has loaded them, and starts quicker.

A JVM spends most of a start on loading, checking and linking thousands of classes. With an archive
of them (Java's class data sharing) Spark and the embedded broker start with about half the
processor time. `penstock jars prepare` writes the archives, once for each Java and each set of
jars; without one everything works as before, only slower.

Java uses an archive only with the very jars and the Java that it was made with, and otherwise loads
the jars. An archive is code that runs, so one that another user could have written is not used.
"""

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import PenstockError
from penstock.jars.cache import cache_directory

# Spark's takes 170 MB, the broker's 40 MB.
KEPT_FOR_EACH_NAME = 3
# Java writes an archive when it ends, which takes seconds.
WRITING_GRACE_S = 180.0
# It says nothing when it does not fit: it is not used then, and everything works.
_QUIET = "-Xlog:cds*=off"


def class_archive(name: str, java: str, jars: Iterable[Path]) -> Path:
    """Where the archive for these jars and this Java is, or would be."""
    content = "\n".join(_identity(path) for path in [Path(java).resolve(), *sorted(jars)])
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    return cache_directory() / "class-archives" / f"{name}-{digest}.jsa"


def options_to_use(archive: Path) -> list[str]:
    """What to tell Java; nothing while there is no archive that can be trusted."""
    return [f"-XX:SharedArchiveFile={archive}", _QUIET] if is_trusted(archive) else []


def options_to_write(archive: Path) -> list[str]:
    """With these, Java writes the archive when it ends."""
    return [f"-XX:ArchiveClassesAtExit={archive}", _QUIET]


def is_trusted(archive: Path) -> bool:
    """Whether it is there and nobody else can have written it."""
    try:
        found = archive.stat(follow_symlinks=False)
    except OSError:
        return False
    foreign = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISREG(found.st_mode) and not foreign and found.st_uid in (0, os.getuid())


def _identity(path: Path) -> str:
    found = path.stat()
    return f"{path}\t{found.st_size}\t{found.st_mtime_ns}"


@contextmanager
def written_archive(archive: Path) -> Iterator[Path]:
    """The name to write an archive to; it gets its real name when the block ends well.

    Archives for former jars are removed, except a few: other checkouts may use them.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        partial = Path(folder) / archive.name
        yield partial
        if not partial.exists():
            raise PenstockError(f"Java wrote no class archive {archive.name}.")
        partial.chmod(0o600)
        partial.replace(archive)
    name = archive.name.rpartition("-")[0]
    former = sorted(archive.parent.glob(f"{name}-*.jsa"), key=lambda one: one.stat().st_mtime)
    for one in former[:-KEPT_FOR_EACH_NAME]:
        one.unlink(missing_ok=True)
