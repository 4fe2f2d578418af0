"""README.md's five lines and every command for a running group, on a real broker and Spark."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from documents.examples import examples_in
from kit.generated_files import ROOT
from kit.terminal import Terminal, succeeds, wait_until_said
from penstock.laboratory.broker import EmbeddedKafka

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ADDRESS = "127.0.0.1:9092"
# Exit codes that are an answer and not a failure: a plan that would change something, or cannot; a
# group that has just begun is not well for a moment.
ANSWERS = {"penstock plan": {0, 6, 7}, "penstock status": {0, 9}}
WITHIN_S = 240.0


def block(mark: str) -> str:
    found = [e for path in DOCUMENTS for e in examples_in(ROOT, path) if e.mark == mark]
    assert len(found) == 1, mark
    return found[0].text


def group_commands() -> list[str]:
    """Each once, in the order of the documents."""
    commands = (
        command
        for path in DOCUMENTS
        for example in examples_in(ROOT, path)
        if example.mark == "run: group"
        for command in example.commands
    )
    return list(dict.fromkeys(commands))


@pytest.fixture
def written_to(broker_jars: None) -> Iterator[EmbeddedKafka]:
    """A broker of this test alone, with a topic that is written to."""
    with EmbeddedKafka() as kafka:
        load = [sys.executable, "-m", "penstock", "load", "orders=20kB/s", "--create", "4"]
        load += ["--duration", "15m", "--bootstrap-server", kafka.bootstrap_servers]
        with subprocess.Popen(load, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as writer:
            try:
                yield kafka
            finally:
                writer.kill()


def test_five_lines_bring_a_group_up_on_ones_own_kafka(
    written_to: EmbeddedKafka, spark_jars: None, own_cache: Path, tmp_path: Path
) -> None:
    """With the broker's address put in: recommended, checked, up, operated, verified, down."""
    lines = block("run: as own-kafka").replace(ADDRESS, written_to.bootstrap_servers).splitlines()
    servers, topics, recommend, check, up = (line.partition("  #")[0].strip() for line in lines)
    terminal = Terminal(tmp_path, f"{servers}\n{topics}", own_cache)
    recommended = terminal.run(recommend)
    assert "To start with: penstock up" in recommended.stdout, recommended.stderr
    planned = terminal.run("penstock plan")
    assert planned.returncode == 7, planned.stdout + planned.stderr
    assert "this is the plan of a new group" in planned.stderr
    done = terminal.run(check)
    assert done.returncode == 0, done.stdout + done.stderr
    with terminal.running(up) as output:
        wait_until_said(output, "The group is up.")
        succeeds(terminal, "penstock verify")  # the first commit takes its time
        for command in group_commands():
            # The newest status of a busy machine's controller may be old for a moment.
            may_wait = command in {"penstock verify", "penstock status"}
            succeeds(terminal, command, within_s=120 if may_wait else 0)
    succeeds(terminal, "penstock verify", within_s=0)
    assert (terminal.folder / "lake" / "orders" / "_delta_log").is_dir()


def test_speeds_are_shown_beside_a_monitor(
    written_to: EmbeddedKafka, own_cache: Path, tmp_path: Path
) -> None:
    """The block of docs/measuring.md runs as written, its monitor in the background."""
    servers = f"export PENSTOCK_KAFKA__BOOTSTRAP_SERVERS={written_to.bootstrap_servers}"
    text = block("run: as measuring")
    done = Terminal(tmp_path, servers, own_cache).run(f"set -e\n{text}\nkill %1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"topic": "orders"' in done.stdout
