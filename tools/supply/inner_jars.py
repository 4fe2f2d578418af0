"""The jars inside of a package: Spark comes with some three hundred, which no lock names.

The package is installed by its hash, and its own list of files (RECORD) has the sum of each. Name
and version are those of the file. Who made it is known where the jar says so.
"""

import base64
import re
import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath

_FILE = re.compile(r"(?P<artifact>.+?)-(?P<version>\d.*)")
_POM = re.compile(r"META-INF/maven/(?P<group>[^/]+)/(?P<artifact>[^/]+)/pom\.properties")
_VERSION = re.compile(r"^version=(\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class InnerJar:
    # Its path in the package.
    path: str
    artifact: str
    version: str
    sha256: str
    # Both are empty where the jar does not say them.
    group: str = ""
    classifier: str = ""

    @property
    def purl(self) -> str:
        """Empty for a jar of which only the name of its file is known."""
        if not self.group:
            return ""
        qualifier = f"?classifier={self.classifier}" if self.classifier else ""
        return f"pkg:maven/{self.group}/{self.artifact}@{self.version}{qualifier}"


def inner_jars(package: str, version: str) -> list[InnerJar]:
    """Empty where this version of the package is not installed."""
    try:
        found = metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return []
    if found.version != version:
        return []
    return [
        inner_jar(str(file), _hexadecimal(file.hash.value), Path(str(found.locate_file(file))))
        for file in sorted(found.files or [], key=str)
        if file.suffix == ".jar" and file.hash is not None and file.hash.mode == "sha256"
    ]


def inner_jar(path: str, sha256: str, file: Path) -> InnerJar:
    """ValueError for a name without a version: somebody has to look."""
    stem = PurePosixPath(path).stem
    described = _described(stem, file)
    if described is not None:
        group, artifact, version = described
        rest = stem.removeprefix(f"{artifact}-").removeprefix(version).removeprefix("-")
        return InnerJar(path, artifact, version, sha256, group, rest)
    named = _FILE.fullmatch(stem)
    if named is None:
        raise ValueError(f"{path} has no version in its name")
    return InnerJar(path, named["artifact"], named["version"], sha256)


def _described(stem: str, file: Path) -> tuple[str, str, str] | None:
    """Group, artifact and version as the jar says them, where the name of its file agrees.

    A jar into which others were put has their descriptions, too.
    """
    fitting = []
    with zipfile.ZipFile(file) as jar:
        for name in jar.namelist():
            said = _POM.fullmatch(name)
            if said is None or not stem.startswith(f"{said['artifact']}-"):
                continue
            version = _VERSION.search(jar.read(name).decode(errors="replace"))
            if version is not None and stem.startswith(f"{said['artifact']}-{version[1]}"):
                fitting.append((said["group"], said["artifact"], version[1]))
    return fitting[0] if len(fitting) == 1 else None


def _hexadecimal(recorded: str) -> str:
    return base64.urlsafe_b64decode(recorded + "=" * (-len(recorded) % 4)).hex()
