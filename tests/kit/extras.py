"""What pyproject.toml declares, and which packages an installation with some extras would have."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
# Makes every package unimportable that is not named, then runs what is left of the arguments.
# `pyspark.core` is how PySpark tells its client from all of Spark.
_HIDE = """
import re, sys
from importlib.metadata import packages_distributions
code, installed = sys.argv[1], set(sys.argv[2].split())
for module, names in packages_distributions().items():
    if not installed & {re.sub("[-_.]+", "-", name).lower() for name in names}:
        sys.modules[module] = None
if "py4j" not in installed:
    sys.modules["pyspark.core"] = None
sys.argv = ["penstock", *sys.argv[3:]]
exec(code)
"""


def project() -> dict[str, Any]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)["project"]
    return found


def declared(*extras: str) -> list[Requirement]:
    """The base and these extras, with the extras that they name themselves."""
    lists: Mapping[str, list[str]] = project()["optional-dependencies"]
    found = [Requirement(text) for text in project()["dependencies"]]
    left = list(extras)
    while left:
        for text in lists[left.pop()]:
            one = Requirement(text)
            if one.name == "penstock":
                left += one.extras
            else:
                found.append(one)
    return found


def normal(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def locked(name: str) -> set[str]:
    text = (ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z0-9-]+)==\S+", text, re.MULTILINE))


def installed_with(*extras: str) -> set[str]:
    """Every package that pip would install, by what the packages here say they need.

    Spark's client is not installed beside all of Spark: its packages are those of the thin lock.
    """
    found: set[str] = {"penstock"}
    left = declared(*extras)
    while left:
        one = left.pop()
        if one.name == "pyspark-client":
            found |= {"pyspark", *(locked("thin") - {"pyspark-client"})}
            continue
        wanted = {normal(one.name), *(f"{normal(one.name)}[{extra}]" for extra in one.extras)}
        if wanted <= found:
            continue
        found |= wanted
        left += _needs(one)
    return {name for name in found if "[" not in name}


def _needs(one: Requirement) -> Iterable[Requirement]:
    for text in importlib.metadata.requires(one.name) or ():
        need = Requirement(text)
        marks = [{"extra": extra} for extra in ("", *one.extras)]
        if need.marker is None or any(need.marker.evaluate(mark) for mark in marks):
            yield need


def run_with_only(
    installed: set[str], code: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `code` in a Python in which nothing but these packages can be imported."""
    return subprocess.run(
        [sys.executable, "-c", _HIDE, code, " ".join(sorted(installed)), *arguments],
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
