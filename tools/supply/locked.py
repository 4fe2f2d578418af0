"""Everything that is shipped, as the locks name it: packages with hashes, and jars with sums."""

import re
from dataclasses import dataclass
from pathlib import Path

from penstock.jars.lock import JarSet, locked_jars

ROOT = Path(__file__).parents[2]
# By image. The thin one has Spark's client in place of all of Spark.
PACKAGE_LOCKS = {"penstock": "runtime", "penstock-thin": "thin"}
_PACKAGE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)(?: ; ([^\\]+))?")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class LockedPackage:
    name: str
    version: str
    # Of each file of the release: a platform installs one of them.
    sha256: tuple[str, ...]
    images: tuple[str, ...]
    # On which Python or system it is installed; empty for all.
    marker: str = ""


@dataclass(frozen=True, slots=True)
class ShippedJar:
    group: str
    artifact: str
    version: str
    sha256: str
    sets: tuple[str, ...]


def parse_lock(text: str) -> dict[tuple[str, str], tuple[tuple[str, ...], str]]:
    """Hashes and marker by name and version. ValueError for a package without a hash."""
    found: dict[tuple[str, str], tuple[tuple[str, ...], str]] = {}
    for entry in re.split(r"\n(?=\S)", text.replace("\\\n", " ")):
        match = _PACKAGE.match(entry)
        if match is None:
            continue
        hashes = tuple(_HASH.findall(entry))
        if not hashes:
            raise ValueError(f"{match[1]} has no hash in its lock")
        marker = (match[3] or "").partition("--hash")[0].strip()
        found[match[1].lower(), match[2]] = (hashes, marker)
    return found


def packages() -> list[LockedPackage]:
    images: dict[tuple[str, str], list[str]] = {}
    described: dict[tuple[str, str], tuple[tuple[str, ...], str]] = {}
    for image, lock in PACKAGE_LOCKS.items():
        text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
        for key, value in parse_lock(text).items():
            images.setdefault(key, []).append(image)
            described[key] = value
    return [
        LockedPackage(*key, described[key][0], tuple(images[key]), described[key][1])
        for key in sorted(images)
    ]


def jars() -> list[ShippedJar]:
    """Those of Spark and S3 are in the image; the broker's are fetched by who wants one."""
    sets: dict[tuple[str, str, str, str], list[str]] = {}
    for jar_set in JarSet:
        for one in locked_jars(jar_set):
            key = (one.group, one.artifact, one.version, one.sha256)
            sets.setdefault(key, []).append(str(jar_set))
    return [ShippedJar(*key, tuple(names)) for key, names in sorted(sets.items())]
