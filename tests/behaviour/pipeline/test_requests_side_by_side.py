"""Requests to an object store wait side by side, on threads that last; none of these needs one."""

import os
import threading
from multiprocessing import get_context

from penstock.pipeline.storage import TableStorage
from penstock.settings.sections import LakeSettings

STORAGE = TableStorage(LakeSettings(root="s3://bucket/lake"), "orders")
PATIENCE_S = 60.0


def _threads(calls: int) -> set[int | None]:
    """On which threads so many calls are made, all of which wait for each other."""
    barrier = threading.Barrier(calls)

    def call(_: int) -> int | None:
        barrier.wait(PATIENCE_S)
        return threading.current_thread().ident

    return set(STORAGE.for_each(call, range(calls)))


def test_one_request_is_made_by_who_asks() -> None:
    """Every look at a log begins with one: a thread for it costs more than it."""
    assert _threads(1) == {threading.current_thread().ident}
    assert STORAGE.for_each(str, []) == []


def test_several_requests_are_made_side_by_side_by_threads_that_last() -> None:
    """The next ones are not made by new threads."""
    first = _threads(8)
    assert len(first) == 8
    assert threading.current_thread().ident not in first
    every = first | _threads(16)
    assert len(every) == 16
    assert _threads(8) <= every


def test_requests_of_requests_do_not_wait_for_a_thread() -> None:
    """All threads have such a one at the same time, and each would wait for ever."""
    barrier = threading.Barrier(16)

    def nested(number: int) -> list[int]:
        barrier.wait(PATIENCE_S)
        return STORAGE.for_each(lambda one: number + one, range(3))

    assert STORAGE.for_each(nested, range(16))[15] == [15, 16, 17]


def test_a_forked_process_has_threads_of_its_own() -> None:
    """Those of its parent are not there."""
    _threads(8)
    child = get_context("fork").Process(target=lambda: os._exit(len(_threads(8))))
    child.start()
    child.join(PATIENCE_S)
    assert child.exitcode == 8
