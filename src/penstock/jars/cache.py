"""The jar cache: one folder for each set and lock, outside any checkout, always complete.

A folder gets its final name only after every checksum was verified, so a half-fetched set is never
used. Checksums are verified again at every use, because a jar is code that runs.
"""

import hashlib
import os
from pathlib import Path

from penstock.errors import PenstockError
from penstock.jars.lock import AnyJarSet, LockedJar, lock_digest, locked_jars


class JarsMissingError(PenstockError):
    """The set was never fetched into this cache."""


class JarCorruptError(PenstockError):
    """A jar's checksum is not the one in the lock file."""


def cache_directory() -> Path:
    """`PENSTOCK_CACHE`, or `penstock` in the user's cache directory."""
    given = os.environ.get("PENSTOCK_CACHE")
    if given:
        return Path(given).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "penstock"


def set_directory(jar_set: AnyJarSet) -> Path:
    return cache_directory() / "jars" / f"{jar_set}-{lock_digest(jar_set)}"


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unsound_jars(jar_set: AnyJarSet, directory: Path) -> list[tuple[LockedJar, str]]:
    """The jars of the set that are missing or wrong in `directory`, with the reason."""
    wrong = []
    for jar in locked_jars(jar_set):
        path = directory / jar.file_name
        if not path.is_file():
            wrong.append((jar, "missing"))
        elif sha256_of(path) != jar.sha256:
            wrong.append((jar, "its sha256 checksum is not the locked one"))
    return wrong


def jar_paths(jar_set: AnyJarSet) -> tuple[Path, ...]:
    """The verified jars of a set; an error with a remedy when one is missing or wrong."""
    directory = set_directory(jar_set)
    remedy = f"Run `penstock jars fetch --only {jar_set}`."
    if not directory.is_dir():
        raise JarsMissingError(
            f"The {jar_set} jars are not in the cache ({directory}).", remedy=remedy
        )
    for jar, wrong in unsound_jars(jar_set, directory):
        raise JarCorruptError(
            f"{directory / jar.file_name}: {wrong}; it is not used.", remedy=remedy
        )
    return tuple(directory / jar.file_name for jar in locked_jars(jar_set))


def classpath(jar_set: AnyJarSet) -> str:
    return os.pathsep.join(str(path) for path in jar_paths(jar_set))
