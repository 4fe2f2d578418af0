"""Finds the Java that runs the broker and Spark: JAVA_HOME or the PATH, 17 or newer."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

from penstock.errors import PenstockError

JAVA_VERSION_MIN = 17
REMEDY = (
    "On Debian, as root: apt-get install -y openjdk-17-jre-headless. Elsewhere install Java 17 or "
    "newer and put it on the PATH, or name it in JAVA_HOME."
)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


class JavaMissingError(PenstockError):
    """No Java, or one too old."""


@dataclass(frozen=True, slots=True)
class Java:
    path: str
    version: int


def java_version(banner: str) -> int | None:
    """The major version in the output of `java -version`; `1.8` counts as 8."""
    match = _VERSION.search(banner)
    return int(match.group(1)) if match else None


def find_java() -> Java:
    home = os.environ.get("JAVA_HOME")
    path = shutil.which(os.path.join(home, "bin", "java")) if home else shutil.which("java")  # noqa: PTH118 -- which() takes text
    if path is None:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH"
        raise JavaMissingError(f"There is no java {where}.", remedy=REMEDY)
    answer = subprocess.run([path, "-version"], capture_output=True, text=True, check=False)
    version = java_version(answer.stderr + answer.stdout)
    if version is None:
        raise JavaMissingError(f"{path} -version printed no version.", remedy=REMEDY)
    if version < JAVA_VERSION_MIN:
        raise JavaMissingError(
            f"{path} is Java {version}; Penstock needs {JAVA_VERSION_MIN} or newer.", remedy=REMEDY
        )
    return Java(path, version)
