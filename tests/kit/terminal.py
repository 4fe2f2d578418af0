"""A user's terminal: commands of the documents are run in it as they stand there."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

WITHIN_S = 600.0
# Exit codes that are an answer and not a failure: a plan that would change something, or cannot.
ANSWERS = {"penstock plan": {0, 6, 7}}


class Terminal:
    """A user's terminal: a folder, the variables that were exported, and the program."""

    def __init__(self, folder: Path, exports: str, cache: Path) -> None:
        self._exports = exports
        self.folder = folder / "work"
        self.folder.mkdir(exist_ok=True)
        programs = folder / "programs"
        programs.mkdir(exist_ok=True)
        for name in ("penstock", "pytest", "python"):
            module = "" if name == "python" else f"-m {name}"
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
            program.chmod(0o755)
        path = f"{programs}:{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "PENSTOCK_CACHE": str(cache)}

    def run(
        self, command: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-uc", f"{self._exports}\n{command}"],
            cwd=self.folder,
            env={**self._environment, **(environment or {})},
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
                assert process.wait(timeout=240) == 0, output.read_text()[-2000:]
            finally:
                process.kill()


def wait_until_said(output: Path, text: str) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while text not in output.read_text(encoding="utf-8", errors="replace"):
        assert time.monotonic() < deadline_s, f"not said: {text}; {output.read_text()[-2000:]}"
        time.sleep(1)  # the output of another process announces nothing


def succeeds(terminal: Terminal, command: str, within_s: float = WITHIN_S) -> None:
    deadline_s = time.monotonic() + within_s
    while True:
        done = terminal.run(command)
        if done.returncode in ANSWERS.get(command, {0}):
            return
        problem = f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert time.monotonic() < deadline_s, problem
        time.sleep(2)  # each look is a program of its own
