"""What a thread's call raises reaches the core, also what is no Exception."""

from collections.abc import Callable
from typing import Any

import pytest

from kit.consumer.transformations import Panic
from penstock.consumer.core import inputs
from penstock.consumer.process.threads import Inbox, Worker, WorkerAnswer


@pytest.mark.parametrize(
    ("raised", "is_broken"),
    [
        (KeyError("bug"), False),
        (Panic("index out of bounds"), False),
        (SystemExit(0), False),
        (MemoryError(), True),
        (KeyboardInterrupt(), True),
        (GeneratorExit(), True),
    ],
)
def test_only_what_breaks_the_process_is_told_as_such(
    raised: BaseException, *, is_broken: bool
) -> None:
    """Native code that panics and a library that exits concern the call alone."""
    inbox = Inbox()
    Worker("tested", inbox).ask(_raising(raised), lambda *_: None, inputs.EndsNotRead)
    (answer,) = inbox.take(10)
    assert isinstance(answer, WorkerAnswer)
    given = answer.as_input(7)
    assert isinstance(given, inputs.EndsNotRead)
    assert isinstance(given.error, inputs.BROKEN) == is_broken
    assert raised in (given.error, given.error.__cause__)


def _raising(error: BaseException) -> Callable[[], Any]:
    def call() -> None:
        raise error

    return call
