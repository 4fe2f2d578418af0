"""Reads the lock files: the jars of each set, with their sha256 checksums.

The broker and the Spark connector need different versions of the same Kafka classes, so they are
separate sets and never share a classpath. `spark.object_store` adds the S3 set to Spark's.
"""

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Self

_LINE = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+) sha256:([0-9a-f]{64})")


class JarSet(StrEnum):
    BROKER = "broker"
    SPARK = "spark"
    S3 = "s3"


@dataclass(frozen=True, slots=True)
class LockFile:
    """A set that is no part of the package: it is named after its file. Tests have such sets."""

    path: Path

    def __str__(self) -> str:
        return self.path.stem


# What can be fetched, kept and verified.
AnyJarSet = JarSet | LockFile
# What a group on one machine needs.
USUAL_SETS = (JarSet.BROKER, JarSet.SPARK)


def spark_sets(object_store: str) -> list[JarSet]:
    """The sets for Spark, with or without an object store."""
    return [JarSet.SPARK, *([JarSet(object_store)] if object_store else [])]


@dataclass(frozen=True, order=True, slots=True)
class LockedJar:
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @classmethod
    def parse(cls, line: str) -> Self:
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"not group:artifact:version sha256:sum: {line!r}")
        return cls(*match.groups())


def lock_text(jar_set: AnyJarSet) -> str:
    if isinstance(jar_set, LockFile):
        return jar_set.path.read_text(encoding="utf-8")
    return files("penstock.jars").joinpath(f"{jar_set}.lock").read_text(encoding="utf-8")


def locked_jars(jar_set: AnyJarSet) -> tuple[LockedJar, ...]:
    lines = (line.strip() for line in lock_text(jar_set).splitlines())
    return tuple(LockedJar.parse(line) for line in lines if line and not line.startswith("#"))


def lock_digest(jar_set: AnyJarSet) -> str:
    """A hash of the lock's content, so that a changed lock never uses an old cache."""
    content = "\n".join(f"{jar}" for jar in sorted(locked_jars(jar_set)))
    return hashlib.sha256(content.encode()).hexdigest()[:12]
