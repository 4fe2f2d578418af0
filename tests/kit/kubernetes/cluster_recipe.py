"""Calls the recipe of the test cluster, `tests/test_cluster/cluster.sh`.

What it compiles lies in the cache (`PENSTOCK_CACHE`), outside the checkout.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from penstock.jars import cache_directory

RECIPE = Path(__file__).parents[2] / "test_cluster" / "cluster.sh"


def cluster_cache() -> Path:
    return cache_directory() / "test-cluster"


def reason_to_skip(*, real_pods: bool) -> str | None:
    """One line that says why no cluster can be started here; None where one can."""
    missing = _answer("missing", *(["pods"] if real_pods else [])).stdout.strip()
    if not missing:
        return None
    return (
        f"no Kubernetes: this machine lacks {missing} for the test cluster,"
        " and PENSTOCK_TEST_KUBECONFIG names no other"
    )


def is_compiled() -> bool:
    return _answer("is-built").returncode == 0


def run_recipe(command: str, environment: Mapping[str, str], timeout_s: float) -> None:
    """Fails the test with the recipe's own output."""
    done = _answer(command, environment=environment, timeout_s=timeout_s)
    assert done.returncode == 0, f"cluster.sh {command}:\n{done.stdout}\n{done.stderr}"


def _answer(
    *arguments: str, environment: Mapping[str, str] | None = None, timeout_s: float = 30
) -> subprocess.CompletedProcess[str]:
    given = {"CLUSTER_CACHE": str(cluster_cache()), **(environment or {})}
    return subprocess.run(
        ["bash", str(RECIPE), *arguments],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
