"""The examples of the documents do what they show: run as written, in an empty folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from documents.examples import MARK, Example, examples_in
from kit.generated_files import ROOT
from kit.kubernetes.helm import helm_program, template
from penstock.settings import load_settings

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = [one for document in DOCUMENTS for one in examples_in(ROOT, document)]
# Blocks that are run by a test of their own, by the name in their mark.
RUN_ELSEWHERE = {
    *("own-kafka", "check-own-kafka", "measuring"),
    *(f"typed-tables-{one}" for one in ("begin", "look", "try", "start", "watch", "change")),
    *(f"typed-tables-{one}" for one in ("compact", "duckdb", "polars", "spark")),
}


def marked(mark: str) -> list[Example]:
    return [one for one in EXAMPLES if one.mark == mark]


def run_block(text: str, folder: Path, cache: Path | None = None) -> None:
    """By a shell that stops at the first failure, with our `penstock` on its path."""
    programs = folder / "programs"
    programs.mkdir()
    program = programs / "penstock"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m penstock "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    work = folder / "work"
    work.mkdir()
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    if cache is not None:
        environment["PENSTOCK_CACHE"] = str(cache)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_there_are_examples_of_every_kind() -> None:
    """A rule over an empty list proves nothing."""
    for mark in ("run", "run: broker", "run: group", "settings", "values"):
        assert marked(mark), mark


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.name)
def test_every_block_of_commands_says_how_it_is_run(example: Example) -> None:
    """Shell commands carry a mark: run, or not run with the reason."""
    assert example.mark or example.language != "sh", f"{example.name} has no mark"
    if example.mark.startswith("run: as "):
        assert example.mark.removeprefix("run: as ") in RUN_ELSEWHERE


def test_a_mark_that_means_nothing_is_not_taken_for_one() -> None:
    """A typing mistake leaves the block without a mark, which fails."""
    assert MARK.match("<!-- run: broker -->")
    assert MARK.match("   <!-- not run: needs a cluster -->")
    assert not MARK.match("<!-- rnu -->")


def test_commands_lose_comments_and_keep_what_is_quoted() -> None:
    """Lines that go on are joined."""
    block = Example("x", 1, "sh", "run", "# why\na --b 'c#d'  # e\nf \\\n  g\n")
    assert block.commands == ["a --b 'c#d'", "f    g"]


@pytest.mark.timeout(700)
@pytest.mark.parametrize("example", marked("run"), ids=lambda one: one.name)
def test_commands_that_need_no_broker_run(example: Example, tmp_path: Path) -> None:
    """Every command of the block ends with exit code 0."""
    run_block(example.text, tmp_path)


@pytest.mark.broker
@pytest.mark.timeout(700)
@pytest.mark.parametrize("example", marked("run: broker"), ids=lambda one: one.name)
def test_commands_with_a_broker_run(
    example: Example, own_cache: Path, tmp_path: Path, broker_jars: None
) -> None:
    """The block starts a broker of its own, uses it, and stops it."""
    run_block(example.text, tmp_path, own_cache)
    assert list((own_cache / "run").rglob("*.json")) == [], "its broker still runs"


@pytest.mark.parametrize("example", marked("settings"), ids=lambda one: one.name)
def test_settings_load(example: Example, tmp_path: Path) -> None:
    """Every option that a document shows exists and takes the value shown."""
    text = example.text.replace("/etc/penstock", str(tmp_path))
    (tmp_path / "kafka-password").write_text("a password", encoding="utf-8")
    file = tmp_path / "penstock.yaml"
    file.write_text(text, encoding="utf-8")
    assert load_settings(file, environment={}).origin


@pytest.mark.timeout(1300)  # the first run on a machine compiles Helm
@pytest.mark.parametrize("example", marked("values"), ids=lambda one: one.name)
def test_values_are_taken_by_the_chart(example: Example, tmp_path: Path) -> None:
    """Helm renders the chart with the values shown."""
    file = tmp_path / "mine.yaml"
    file.write_text(example.text, encoding="utf-8")
    done = template(helm_program(), file)
    assert done.returncode == 0, done.stderr
