"""`penstock up` says what it waits for while its parts start."""

import os
import re
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import pytest

import penstock.local_group
from kit.program import invoked
from penstock.cli import up
from penstock.cli.told_progress import ToldProgress
from penstock.settings import Settings


class SlowGroup:
    """Stands in for the parts: one takes long to start, and then somebody presses Ctrl-C."""

    directory = "here"

    def __init__(
        self,
        settings: Settings,
        *_: object,
        on_progress: Callable[[str], None],
        **_options: Any,
    ) -> None:
        self.settings = settings
        self._on_progress = on_progress

    def __enter__(self) -> Self:
        self._on_progress("starting a Spark Connect server")
        time.sleep(0.5)  # five times as long as until it is said again
        self._on_progress("Spark at sc://here")
        time.sleep(0.3)  # nothing is waited for now
        os.kill(os.getpid(), signal.SIGINT)
        return self

    def __exit__(self, *_: object) -> None:
        self._on_progress("stopping the monitor")


def test_what_takes_long_is_said_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its time, until the next line; what is done is not said again."""
    monkeypatch.setattr(penstock.local_group, "LocalGroup", SlowGroup)
    monkeypatch.setattr(up, "fetch_with_progress", lambda _: None)
    monkeypatch.setattr(up, "ToldProgress", partial(ToldProgress, first_after_s=0.1))
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        answer = invoked("up")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert answer.exit_code == 0, answer.exception
    told = answer.stderr
    assert re.search(
        r"starting a Spark Connect server\nstill starting a Spark Connect server, [\d.]+ s\n", told
    )
    assert "still Spark" not in told
    assert "The group is up." in told
