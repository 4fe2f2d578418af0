"""What the recipe of the test cluster says and does where something is missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kit.kubernetes.cluster_recipe import RECIPE, cluster_cache, is_compiled, reason_to_skip
from kit.kubernetes.kubernetes_cluster import named_or_own_cluster

ROOT = Path(__file__).parents[3]
TOOLS = "awk bash cat curl cut date dirname flock id mkdir openssl sed sha256sum sort"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with the needed tools but without Go, an empty cache, and no named cluster."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in TOOLS.split():
        found = shutil.which(tool)
        if found is not None:
            (tools / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PENSTOCK_TEST_KUBECONFIG", raising=False)
    return tools


def fake(machine: Path, name: str, script: str) -> None:
    path = machine / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def compiled_folder() -> Path:
    """The name that the recipe gives to what it compiles from these sources."""
    listed = subprocess.run(
        [
            "bash",
            "-c",
            'HERE=$0; . "$0/settings.sh"; . "$0/build.sh"; echo "$PROGRAMS"',
            RECIPE.parent,
        ],
        env={**os.environ, "CLUSTER_CACHE": str(cluster_cache())},
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(listed.stdout.strip())


def test_without_go_the_kubernetes_tests_are_skipped_with_one_line(machine: Path) -> None:
    """The line names Go, and the variable that names another cluster."""
    with (
        pytest.raises(pytest.skip.Exception) as skipped,
        named_or_own_cluster(real_pods=False),
    ):
        pass
    line = str(skipped.value)
    assert "lacks Go 1.24 or later" in line
    assert "PENSTOCK_TEST_KUBECONFIG" in line
    assert "\n" not in line


@pytest.mark.parametrize(("version", "is_enough"), [("1.19.8", False), ("1.24.0", True)])
def test_an_old_go_is_as_good_as_none(machine: Path, version: str, is_enough: bool) -> None:
    """Only a Go that can compile these sources lets the tests run."""
    fake(machine, "go", f"echo go{version}")
    assert (reason_to_skip(real_pods=False) is None) == is_enough


def test_what_is_compiled_already_needs_no_go(machine: Path) -> None:
    """The cache of another day is enough."""
    assert not is_compiled()
    compiled_folder().mkdir(parents=True)
    assert is_compiled()
    assert reason_to_skip(real_pods=False) is None


def test_a_real_node_needs_more_than_a_control_plane(machine: Path) -> None:
    """The line lists everything that is missing, in one go."""
    fake(machine, "id", "echo 1000")
    reason = reason_to_skip(real_pods=True)
    assert reason is not None
    for need in ("apt-get", "gcc", "Go 1.24 or later", "root's rights"):
        assert need in reason


def test_make_says_that_the_tests_will_be_skipped(machine: Path) -> None:
    """Compiling without Go is no failure, and not silent."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "kit" / "kubernetes" / "compile_kubernetes.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "will be skipped" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_compilation_that_fails_leaves_nothing_that_looks_compiled(machine: Path) -> None:
    """What is half made never has its final name, and the failure is reported."""
    for tool in ("nice", "seq", "rm", "mv", "ln", "du"):
        (machine / tool).symlink_to(shutil.which(tool, path=os.defpath) or f"/bin/{tool}")
    script = "case $1 in env) echo go1.26.0 ;; list) ;; build) echo no memory >&2; exit 1 ;; esac"
    fake(machine, "go", script)
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "kit" / "kubernetes" / "compile_kubernetes.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "compiling Kubernetes" in done.stderr
    assert "no memory" in done.stderr
    assert not is_compiled()
