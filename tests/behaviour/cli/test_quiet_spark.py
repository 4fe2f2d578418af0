"""What a program prints while it starts, and what it prints later."""

import os
import subprocess
import sys

import pytest

from penstock.cli.quiet_spark import quiet_start

# It says something, waits for a line, and says something else.
PROGRAM = """
import sys
print("noise", file=sys.stderr, flush=True)
print("up", flush=True)
input()
print("from my code", file=sys.stderr)
"""


def started() -> "subprocess.Popen[str]":
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "up\n"
    return program


def test_only_what_comes_after_the_start_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    """And what this process says itself, at once."""
    with quiet_start():
        program = started()
        sys.stderr.write("starting\n")
    program.communicate("\n")
    shown = ""
    while "from my code" not in shown:
        shown += capfd.readouterr().err
    assert shown == "starting\nfrom my code\n"


def fails_to_start() -> None:
    with quiet_start():
        subprocess.run(
            [sys.executable, "-c", "import os; os.write(2, b'no memory\\n')"], check=True
        )
        raise ValueError("the start failed")


def test_a_start_that_fails_shows_what_was_said(capfd: pytest.CaptureFixture[str]) -> None:
    """Nobody else would say why."""
    with pytest.raises(ValueError, match="failed"):
        fails_to_start()
    os.write(2, b"the end\n")
    assert capfd.readouterr().err == "no memory\nthe end\n"
