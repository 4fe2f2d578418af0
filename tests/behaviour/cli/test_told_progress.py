"""A command that waits says what for, and that it goes on."""

import re
import time

from penstock.cli.told_progress import ToldProgress


def until(lines: list[str], number: int) -> None:
    deadline_s = time.monotonic() + 30
    while len(lines) < number:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)  # the teller is a thread of its own


def test_what_takes_long_is_said_again() -> None:
    """With the time it has taken, until the next line."""
    lines: list[str] = []
    with ToldProgress("starting Spark", print_line=lines.append, first_after_s=0.1) as tell:
        until(lines, 3)
        tell("Spark at sc://here")
        told = len(lines)
        time.sleep(0.3)  # three times as long as until a line is said again
        assert len(lines) == told
    assert lines[0] == "starting Spark"
    assert all(re.fullmatch(r"still starting Spark, [\d.]+ s", line) for line in lines[1:3])
    assert lines[-1] == "Spark at sc://here"


def test_what_is_mostly_quick_is_only_said_if_it_is_not() -> None:
    """A request that is answered at once is no reason for a line."""
    lines: list[str] = []
    with ToldProgress(print_line=lines.append, first_after_s=0.1) as tell:
        tell.if_long("waiting for an answer")
        until(lines, 1)
    assert re.fullmatch(r"still waiting for an answer, [\d.]+ s", lines[0])


def test_what_is_quick_is_said_once() -> None:
    """And nothing is waited for at the end."""
    lines: list[str] = []
    began_s = time.monotonic()
    with ToldProgress(print_line=lines.append, first_after_s=60) as tell:
        tell("starting the monitor")
        tell("trying the lake")
        tell.if_long("waiting for an answer")
    assert time.monotonic() - began_s < 30
    assert lines == ["starting the monitor", "trying the lake"]
