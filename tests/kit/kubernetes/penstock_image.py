"""Penstock as an image on the real test node: our sources and the packages of this environment.

It is the thin image of deploy/Dockerfile plus the Kubernetes client, so that the controller runs
from it too. Without Docker and a registry, `cluster.sh image` adds a folder to a Python base image.
Spark's jars are left out, because consumers use a Connect server.
"""

import importlib.metadata
import shutil
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement

from kit.kubernetes.cluster_recipe import RECIPE
from kit.kubernetes.kubernetes_cluster import Cluster

ROOT = Path(__file__).parents[3]
NAME = "localhost/penstock:1"
PACKAGES = (
    "pyspark",
    "grpcio",
    "grpcio-status",
    "googleapis-common-protos",
    "zstandard",
    "confluent-kafka",
    "kafka-python",
    "kubernetes",
    "deltalake",
    "obstore",
    "pydantic",
    "typer",
    "prometheus-client",
    "rich",
    "starlette",
    "uvicorn",
    "pyyaml",
    "structlog",
    "numpy",
    "pandas",
    "pyarrow",
)
LEFT_OUT = (
    "/jars/",
    "/tests/",
    "/include/",
    "/bin/",
    "/examples/",
    "__pycache__",
    "/kubernetes/aio/",
)
PROGRAM = """#!/bin/sh
export PYTHONPATH=/opt/penstock PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
exec python3 -m penstock "$@"
"""


def put_on_node(cluster: Cluster, folder: Path) -> None:
    """Build the image in `folder` and load it on the cluster's node as `NAME`."""
    assert cluster.environment is not None, "only a node of our own takes images"
    libraries = folder / "opt" / "penstock"
    shutil.copytree(ROOT / "src" / "penstock", libraries / "penstock")
    for name in sorted(_with_requirements(PACKAGES)):
        _copy(name, libraries)
    _compile(libraries)
    program = folder / "usr" / "local" / "bin" / "penstock"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    # Libraries that wheels expect and the base image lacks.
    standard = Path("/usr/lib/x86_64-linux-gnu/libstdc++.so.6")
    target = folder / standard.relative_to("/")
    target.parent.mkdir(parents=True)
    shutil.copy(standard.resolve(), target)
    subprocess.run(
        ["bash", str(RECIPE), "image", NAME, str(folder), "penstock"],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **cluster.environment},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def _compile(libraries: Path) -> None:
    """Compile here, because a pod's root file system is read-only."""
    command = [sys.executable, "-m", "compileall", "-q", "-j", "2", "--invalidation-mode"]
    subprocess.run([*command, "unchecked-hash", str(libraries)], check=False)


def _with_requirements(names: tuple[str, ...]) -> set[str]:
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop().lower()
        if name in found:
            continue
        found.add(name)
        for text in importlib.metadata.requires(name) or ():
            one = Requirement(text)
            if one.marker is None or one.marker.evaluate({"extra": ""}):
                left.append(one.name)
    return found


def _copy(name: str, libraries: Path) -> None:
    for file in importlib.metadata.files(name) or ():
        text = f"/{file}"
        source = Path(str(file.locate()))
        if ".." in file.parts or any(part in text for part in LEFT_OUT) or not source.is_file():
            continue
        target = libraries / file
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copy(source, target)
