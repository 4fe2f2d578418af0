"""README.md's five lines and every command for a running group, on a real broker and Spark."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from documents.examples import examples_in
from kit.generated_files import ROOT
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


class Terminal:
    """A user's terminal: a folder, the variables that were exported, and the program."""

    def __init__(self, folder: Path, exports: str, cache: Path) -> None:
        self._exports = exports
        self.folder = folder / "work"
        self.folder.mkdir(exist_ok=True)
        programs = folder / "programs"
        programs.mkdir(exist_ok=True)
        program = programs / "penstock"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m penstock "$@"\n')
        program.chmod(0o755)
        path = f"{programs}:{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "PENSTOCK_CACHE": str(cache)}

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-uc", f"{self._exports}\n{command}"],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=WITHIN_S,
        )

    @contextmanager
    def running(self, command: str) -> Iterator[Path]:
        """Until the end of the block; then Ctrl-C, after which it must end with exit code 0."""
        output = self.folder.parent / "output.txt"
        with (
            output.open("wb") as log,
            subprocess.Popen(
                ["bash", "-uc", f"{self._exports}\nexec {command}"],
                cwd=self.folder,
                env=self._environment,
                stdout=log,
                stderr=log,
            ) as process,
        ):
            try:
                yield output
                process.send_signal(signal.SIGINT)
                assert process.wait(timeout=120) == 0, output.read_text()[-2000:]
            finally:
                process.kill()


def wait_until_said(output: Path, text: str) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while text not in output.read_text(encoding="utf-8", errors="replace"):
        assert time.monotonic() < deadline_s, f"not said: {text}; {output.read_text()[-2000:]}"
        time.sleep(1)


def succeeds(terminal: Terminal, command: str, within_s: float = WITHIN_S) -> None:
    deadline_s = time.monotonic() + within_s
    while True:
        done = terminal.run(command)
        if done.returncode in ANSWERS.get(command, {0}):
            return
        problem = f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert time.monotonic() < deadline_s, problem
        time.sleep(2)


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
            succeeds(terminal, command, within_s=0 if command != "penstock verify" else 60)
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
