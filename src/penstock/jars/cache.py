"""Where jars are kept: one folder a set and lock, outside any checkout, whole or not there.

A folder appears by a rename after every sum was checked, so a half-fetched one never has its final
name. Sums are checked again at every use: a disk can lie, and a jar is code that we run.
"""

import hashlib
import os
from pathlib import Path

from penstock.errors import PenstockError
from penstock.jars.lock import JarSet, LockedJar, lock_digest, locked_jars


class JarsMissingError(PenstockError):
    """The set was never fetched here."""


class JarCorruptError(PenstockError):
    """A jar does not have the sum that the lock demands."""


def cache_directory() -> Path:
    """`PENSTOCK_CACHE`, or the user's cache as the desktop conventions have it."""
    given = os.environ.get("PENSTOCK_CACHE")
    if given:
        return Path(given).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "penstock"


def set_directory(jar_set: JarSet) -> Path:
    return cache_directory() / "jars" / f"{jar_set}-{lock_digest(jar_set)}"


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unsound_jars(jar_set: JarSet, directory: Path) -> list[tuple[LockedJar, str]]:
    """Every jar of the set that `directory` cannot serve, with what is wrong."""
    wrong = []
    for jar in locked_jars(jar_set):
        path = directory / jar.file_name
        if not path.is_file():
            wrong.append((jar, "missing"))
        elif sha256_of(path) != jar.sha256:
            wrong.append((jar, "its sha256 sum is not the locked one"))
    return wrong


def jar_paths(jar_set: JarSet) -> tuple[Path, ...]:
    """The verified jars of a set; an error that says what to do when they cannot be had."""
    directory = set_directory(jar_set)
    remedy = f"Run `penstock jars fetch --only {jar_set}`."
    if not directory.is_dir():
        raise JarsMissingError(
            f"The {jar_set} jars are not in the cache ({directory}).", remedy=remedy
        )
    for jar, wrong in unsound_jars(jar_set, directory):
        raise JarCorruptError(
            f"{directory / jar.file_name}: {wrong}; it will not be run.", remedy=remedy
        )
    return tuple(directory / jar.file_name for jar in locked_jars(jar_set))


def classpath(jar_set: JarSet) -> str:
    return os.pathsep.join(str(path) for path in jar_paths(jar_set))
