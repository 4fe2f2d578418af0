"""What the package declares: extras, locks and descriptions agree with the code and each other."""

import ast
import importlib.metadata
import re
import sys
from pathlib import Path

import pytest

from kit.extras import ROOT, declared, installed_with, locked, normal, project, run_with_only
from penstock.extras import Extra, missing_extra

SOURCE = ROOT / "src" / "penstock"
# Comes with a declared package, which is imported where this one is.
PART_OF = {"py4j": "pyspark", "pydantic-core": "pydantic"}
# Used by one comparison of a study, by those who develop Penstock.
DEVELOPMENT_ONLY = {"ortools"}
OPERATOR = (
    "settings",
    "topics",
    "status",
    "plan",
    "speeds",
    "service",
    "jars",
    "doctor",
    "init",
    "laboratory.load",
    "laboratory.simulate",
)
LABORATORY = (
    "laboratory.campaign",
    "laboratory.demo",
    "laboratory.simulate",
    "laboratory.study",
    "=laboratory.campaign.run",
    "=laboratory.campaign.picture",
    "=laboratory.demo.run",
    "=laboratory.demo.picture",
)
PROGRAM = "from penstock.cli.main import main; main()"


def _imported(path: Path) -> set[str]:
    """Top-level modules that a file imports, at its head or later."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"penstock"}


def test_every_imported_package_is_declared() -> None:
    """Nothing is used that only happens to come along with something else."""
    names = {normal(one.name) for one in declared("all")}
    packages = importlib.metadata.packages_distributions()
    undeclared: dict[str, str] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for module in _imported(path):
            owners = {normal(name) for name in packages.get(module, [module])}
            owners = {PART_OF.get(name, name) for name in owners}
            if not owners & (names | DEVELOPMENT_ONLY):
                undeclared[module] = path.name
    assert not undeclared


def test_the_extras_are_those_the_program_names() -> None:
    """A message never names an extra that pip does not know, and none is left unsaid."""
    assert set(project()["optional-dependencies"]) == {*Extra, "all"}


@pytest.mark.parametrize(("lock", "extra"), [("runtime", "all"), ("thin", "connect")])
def test_a_lock_has_what_its_extra_declares(lock: str, extra: str) -> None:
    """Each direct dependency is pinned to a version that the declaration allows."""
    text = (ROOT / f"requirements/{lock}.txt").read_text(encoding="utf-8")
    pinned: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==([^\s;]+)", text, re.MULTILINE):
        pinned.setdefault(name, []).append(version)
    for one in declared(extra):
        assert pinned[normal(one.name)], one.name
        assert all(one.specifier.contains(version) for version in pinned[normal(one.name)])


def test_the_development_lock_holds_the_runtime_lock() -> None:
    """What is tested is what is shipped."""
    assert locked("runtime") <= locked("development")


def test_the_project_says_who_it_is() -> None:
    """Documents by paths that exist, the types are announced, and the marker for them is there."""
    for path in project()["urls"].values():
        assert (ROOT / path).is_file(), path
    assert "Typing :: Typed" in project()["classifiers"]
    assert (SOURCE / "py.typed").is_file()
    assert project()["keywords"]


@pytest.mark.parametrize(
    ("extras", "modules"),
    [
        ((), ("main", "controller", "monitor", "up", "recommend", "laboratory.broker", *OPERATOR)),
        (("kubernetes",), ("controller", "=deployment.kubernetes")),
        (("connect",), ("consumer", "verify", "=consumer.process", "=pipeline.upkeep")),
        (("spark",), ("spark", "=consumer.process", "=local_group", "=testing")),
        (("laboratory",), LABORATORY),
    ],
    ids=lambda value: "+".join(value) or "base" if isinstance(value, tuple) else None,
)
def test_a_process_imports_only_what_its_extra_has(
    extras: tuple[str, ...], modules: tuple[str, ...]
) -> None:
    """With every other package hidden, its commands and its process can still be imported."""
    names = [
        f"penstock.{one[1:]}" if one.startswith("=") else f"penstock.cli.{one}" for one in modules
    ]
    done = run_with_only(installed_with(*extras), f"import {', '.join(names)}")
    assert done.returncode == 0, done.stderr


def test_what_is_large_stays_out_where_it_is_not_needed() -> None:
    """Controller and monitor have neither Spark nor pictures; a thin consumer has no JVM."""
    assert not installed_with() & {"pyspark", "pyarrow", "pandas", "deltalake", "matplotlib"}
    assert not installed_with("kubernetes") & {"pyspark", "pyarrow", "pandas", "matplotlib"}
    assert not installed_with("connect") & {"py4j", "matplotlib", "kubernetes"}
    assert {"pyspark", "py4j"} <= installed_with("spark")


@pytest.mark.parametrize(
    ("command", "extras", "remedies"),
    [
        ("demo", (), ["penstock[laboratory]"]),
        ("demo", ("spark",), ["penstock[laboratory]"]),
        ("campaign", ("spark",), ["penstock[laboratory]"]),
        ("simulate --generate walk --plot a.png", (), ["penstock[laboratory]"]),
        ("study packing", ("connect",), ["penstock[laboratory]"]),
        ("consumer --id 1", (), ["penstock[spark]", "penstock[connect]"]),
        ("verify", (), ["penstock[spark]", "penstock[connect]"]),
        ("lake compact", (), ["penstock[spark]", "penstock[connect]"]),
        ("up", (), ["penstock[spark]"]),
        ("spark start", (), ["penstock[spark]"]),
        ("controller --set controller.deployment=kubernetes", (), ["penstock[kubernetes]"]),
    ],
)
def test_a_command_without_its_extra_says_what_to_install(
    command: str, extras: tuple[str, ...], remedies: list[str], tmp_path: Path
) -> None:
    """One message with the command for pip and exit code 1, no stack."""
    installed = installed_with(*extras)
    # Should it start after all, it finds neither jars nor anybody's broker.
    nowhere = {"PENSTOCK_CACHE": str(tmp_path), "PENSTOCK_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:9"}
    done = run_with_only(installed, PROGRAM, *command.split(), **nowhere)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    for remedy in remedies:
        assert f"pip install '{remedy}'" in done.stderr


def test_simulate_needs_no_extra() -> None:
    """Sizing comes before the decision to install Spark."""
    command = "simulate --generate walk --partitions 4 --measurements 3 -o json"
    done = run_with_only(installed_with(), PROGRAM, *command.split())
    assert done.returncode == 0, done.stderr
    assert "CHAIN" in done.stdout


def test_a_module_that_no_extra_has_stays_an_error_of_the_program() -> None:
    """A real mistake is not hidden behind advice to install something."""
    assert missing_extra(ModuleNotFoundError("no", name="penstock.nosuch")) is None
    assert missing_extra(ModuleNotFoundError("no", name="pydantic.nosuch")) is None
    assert missing_extra(ImportError("cannot import name", name="pyspark")) is None
