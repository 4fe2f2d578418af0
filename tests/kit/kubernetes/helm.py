"""Helm for the tests of the chart: from the PATH, or compiled once from Go's module proxy.

    helm = helm_program()        # skips the test with a reason if there is none
    objects = rendered(helm, "values/secured.yaml")

The compiled program is kept in the cache (`PENSTOCK_CACHE`), outside the checkout.
"""

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.generated_files import ROOT
from penstock.jars import cache_directory

CHART = ROOT / "deploy" / "helm" / "penstock"
VERSION = "v3.18.6"
BUILD_TIMEOUT_S = 1200
ATTEMPTS = 3
ATTEMPT_PAUSE_S = 20
# As in Helm's own build; without these Helm assumes a very old cluster.
_KUBERNETES_MINOR = 33
_STAMPS = {
    "internal/version.version": VERSION,
    "pkg/lint/rules.k8sVersionMajor": "1",
    "pkg/lint/rules.k8sVersionMinor": str(_KUBERNETES_MINOR),
    "pkg/chartutil.k8sVersionMajor": "1",
    "pkg/chartutil.k8sVersionMinor": str(_KUBERNETES_MINOR),
}


def helm_program() -> Path:
    """Helm 3; compiling it takes about two minutes, once per machine."""
    installed = shutil.which("helm")
    if installed and _ran([installed, "version", "--short"]).stdout.startswith("v3."):
        return Path(installed)
    kept = cache_directory() / "helm" / VERSION / "helm"
    if kept.is_file():
        return kept
    go = shutil.which("go")
    if go is None:
        pytest.skip("the chart is not tested: there is neither helm 3 nor go on this machine")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with (kept.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.is_file():
            _compile(go, kept)
    return kept


def _compile(go: str, kept: Path) -> None:
    """Compile into a separate folder and rename, so that an interrupted build leaves nothing."""
    scratch = kept.parent / "compiling"
    scratch.mkdir(exist_ok=True)
    stamps = " ".join(f"-X helm.sh/helm/v3/{name}={value}" for name, value in _STAMPS.items())
    module = f"helm.sh/helm/v3/cmd/helm@{VERSION}"
    for attempt in range(1, ATTEMPTS + 1):
        done = subprocess.run(
            ["nice", go, "install", "-trimpath", "-ldflags", f"-s -w {stamps}", module],
            cwd=scratch,
            env={**os.environ, "GOBIN": str(scratch), "CGO_ENABLED": "0"},
            capture_output=True,
            text=True,
            check=False,
            timeout=BUILD_TIMEOUT_S,
        )
        if done.returncode == 0:
            break
        # The proxy is sometimes busy; downloaded modules stay.
        assert attempt < ATTEMPTS, f"helm could not be compiled: {done.stderr[-600:]}"
        time.sleep(ATTEMPT_PAUSE_S)
    (scratch / "helm").rename(kept)
    shutil.rmtree(scratch)


def _ran(command: Sequence[str], timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(command), capture_output=True, text=True, check=False, timeout=timeout_s
    )


def helm(program: Path, *arguments: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    """Run Helm; the caller checks the exit code."""
    return _ran([str(program), *arguments], timeout_s)


def template(
    program: Path,
    *values: Path,
    release: str = "penstock",
    settings: Sequence[str] = (),
    chart: Path = CHART,
) -> subprocess.CompletedProcess[str]:
    """`helm template` with value files and `--set` texts."""
    given = [text for path in values for text in ("-f", str(path))]
    given += [text for one in settings for text in ("--set", one)]
    return helm(program, "template", release, str(chart), "--namespace", "penstock", *given)


def rendered(
    program: Path,
    *values: Path,
    release: str = "penstock",
    settings: Sequence[str] = (),
    chart: Path = CHART,
) -> list[dict[str, Any]]:
    """The rendered objects; if rendering fails, the test fails with Helm's message."""
    done = template(program, *values, release=release, settings=settings, chart=chart)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def of_kind(objects: Sequence[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


def containers(deployment: dict[str, Any]) -> list[dict[str, Any]]:
    """All containers of a Deployment, including init containers."""
    pod = deployment["spec"]["template"]["spec"]
    return [*pod.get("initContainers", []), *pod["containers"]]
