"""The jars inside of a package: Spark comes with some three hundred, which no lock names.

The package is installed by its hash, and its own list of files (RECORD) has the sum of each. Name
and version are those of the file. Who made it is what the jar says, else what the package's list of
licences says, else what a table says.
"""

import base64
import re
import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath

from supply.listed_by_package import group_listed, listed_by_package
from supply.said_by_jar import SaidByJar, said_by_jar

_FILE = re.compile(r"(?P<artifact>.+?)-(?P<version>\d.*)")
_POM = re.compile(r"META-INF/maven/(?P<group>[^/]+)/(?P<artifact>[^/]+)/pom\.properties")
_VERSION = re.compile(r"^version=(\S+)", re.MULTILINE)
# Groups of jars that nothing else names, as their projects publish them.
GROUPS = {
    "bsp4j": "ch.epfl.scala",
    "class-path-util_2.13": "io.get-coursier",
    "interface": "io.get-coursier",
    "org.eclipse.lsp4j.generator": "org.eclipse.lsp4j",
    "org.eclipse.lsp4j.jsonrpc": "org.eclipse.lsp4j",
    "org.eclipse.xtend.lib": "org.eclipse.xtend",
    "org.eclipse.xtend.lib.macro": "org.eclipse.xtend",
    "org.eclipse.xtext.xbase.lib": "org.eclipse.xtext",
}


@dataclass(frozen=True, slots=True)
class InnerJar:
    # Its path in the package.
    path: str
    artifact: str
    version: str
    sha256: str
    said: SaidByJar
    # Both are empty where nobody says them.
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
    listed = listed_by_package(package)
    return [
        inner_jar(
            str(file), _hexadecimal(file.hash.value), Path(str(found.locate_file(file))), listed
        )
        for file in sorted(found.files or [], key=str)
        if file.suffix == ".jar" and file.hash is not None and file.hash.mode == "sha256"
    ]


def inner_jar(path: str, sha256: str, file: Path, listed: dict[str, str]) -> InnerJar:
    """`listed` is the package's list of licences, by `group:artifact`.

    ValueError for a name without a version: somebody has to look.
    """
    stem = PurePosixPath(path).stem
    with zipfile.ZipFile(file) as jar:
        described = _described(stem, jar)
        if described is not None:
            group, artifact, version = described
            rest = stem.removeprefix(f"{artifact}-").removeprefix(version).removeprefix("-")
            said = said_by_jar(jar, artifact, f"META-INF/maven/{group}/{artifact}/pom.xml")
            return InnerJar(path, artifact, version, sha256, said, group, rest)
        named = _FILE.fullmatch(stem)
        if named is None:
            raise ValueError(f"{path} has no version in its name")
        artifact = named["artifact"]
        said = said_by_jar(jar, artifact, "")
    group = said.group or group_listed(artifact, listed) or GROUPS.get(artifact, "")
    return InnerJar(path, artifact, named["version"], sha256, said, group)


def _described(stem: str, jar: zipfile.ZipFile) -> tuple[str, str, str] | None:
    """Group, artifact and version as the jar says them, where the name of its file agrees.

    A jar into which others were put has their descriptions, too.
    """
    fitting = []
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
