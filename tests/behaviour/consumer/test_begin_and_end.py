"""How an incarnation begins, what ends it, and how a shutdown treats the running batch."""

from collections.abc import Callable
from functools import partial

import pytest

from kit.consumer.consumer_script import A, B, Script, passes
from penstock.consumer.core import inputs
from penstock.consumer.core.effects import (
    CarryBatch,
    Effect,
    EndControlled,
    Fail,
    InterruptBatch,
    KeepTables,
    Log,
    LogLevel,
    ReadEnds,
    ReadLedger,
    ReadLogSizes,
    RemoveOrphans,
    StartSpark,
    WaitUntil,
)
from penstock.consumer.core.inputs import Input
from penstock.consumer.core.shutdown import GraceExceededError
from penstock.consumer.core.state_machine import step
from penstock.errors import UnreachableError
from penstock.messages import PreviousShutdown, StopConsumingEvent, StopReason
from penstock.model import Epoch


@pytest.mark.parametrize(
    ("previous", "removals_ms"),
    [
        (PreviousShutdown.NONE, []),
        (PreviousShutdown.CONTROLLED, []),
        (PreviousShutdown.UNCONTROLLED, [0, 10_000, 60_000, 600_000]),
        (PreviousShutdown.UNKNOWN, [0, 10_000, 60_000, 600_000]),
    ],
)
def test_files_without_a_commit_are_removed_after_an_uncontrolled_end(
    previous: PreviousShutdown, removals_ms: list[int]
) -> None:
    """Again after a while, because the ledger must first move past what a dead consumer left."""
    script = Script(previous_shutdown=previous)
    assert script.did(StartSpark) == [StartSpark()]
    assert script.did(WaitUntil) == [WaitUntil(0)], "the first report is due"
    found = []
    for now_ms in (0, 9_999, 10_000, 59_999, 60_000, 599_999, 600_000, 10**9):
        script.now_ms = now_ms
        script.take(inputs.Tick(now_ms))
        found += [now_ms] * len(script.did(RemoveOrphans))
    assert found == removals_ms


def test_orphans_that_cannot_be_removed_are_only_logged() -> None:
    """They are in nobody's way."""
    script = Script()
    script.take(inputs.OrphansNotRemoved(0, UnreachableError("away")))
    assert script.logged() == ["orphans_kept"]


def test_a_removal_of_orphans_that_failed_is_tried_again() -> None:
    """Also after the last one that was planned, until one succeeds."""
    script = Script(previous_shutdown=PreviousShutdown.UNCONTROLLED)
    for now_ms in (0, 10_000, 60_000, 600_000):
        script.now_ms = now_ms
        script.wait(0)
    script.take(inputs.OrphansNotRemoved(script.now_ms, UnreachableError("away")))
    script.wait(599_999)
    assert not script.did(RemoveOrphans)
    script.wait(1)
    assert script.did(RemoveOrphans)


@pytest.mark.parametrize(
    ("failed", "again"),
    [
        (inputs.EndsNotRead, ReadEnds),
        (inputs.StartOffsetsNotRead, ReadEnds),
        (inputs.LogSizesNotRead, ReadLogSizes),
        (inputs.TablesNotKept, KeepTables),
        (inputs.OrphansNotRemoved, RemoveOrphans),
        (partial(inputs.LedgerNotRead, asked={B: Epoch.parse("1.2")}), ReadLedger),
    ],
)
def test_a_consumer_goes_on_after_an_error_that_nobody_expected(
    failed: Callable[[int, Exception], Input], again: type[Effect]
) -> None:
    """It is logged with the place where it was raised, and what failed is tried again."""
    script = Script(upkeep_period_ms=10_000).with_spark().owning(A)
    script.start((B, "1.2"))
    script.ends({A: 10})
    bug = KeyError("bug")
    script.take(failed(script.now_ms, bug))
    assert not script.did(Fail)
    (log,) = script.did(Log)
    assert (log.level, log.fields["error"]) == (LogLevel.ERROR, "KeyError: 'bug'")
    assert log.fields["exc_info"] is bug
    while not script.did(again):
        assert script.now_ms < 3_600_000, "it is not tried again"
        script.wait_until_due()


@pytest.mark.parametrize("error", [MemoryError(), inputs.InterruptedCallError("KeyboardInterrupt")])
def test_a_consumer_that_is_itself_broken_ends(error: Exception) -> None:
    """Whatever raised it: the next incarnation reads the ledger."""
    for failed in (inputs.EndsNotRead, inputs.TablesNotKept, inputs.OrphansNotRemoved):
        script = Script()
        script.take(failed(0, error))
        assert script.did(Fail) == [Fail(error)]


@pytest.mark.parametrize("error", [UnreachableError("away"), KeyError("bug")])
def test_a_batch_that_raises_ends_the_process(error: Exception) -> None:
    """The pipeline gives every failure to its partitions; what it raises is none of theirs."""
    script = Script()
    script.take(inputs.BatchCrashed(0, error))
    assert script.did(Fail) == [Fail(error)]


def test_an_input_without_a_handler_raises() -> None:
    """Nothing is ignored by accident."""
    with pytest.raises(KeyError):
        step(Script().state, Input(0))


def test_the_next_tick_is_named_only_when_it_changes() -> None:
    """The process keeps the last time that it was given."""
    script = Script()
    script.wait(0)
    assert script.did(WaitUntil) == [WaitUntil(2_000)]
    script.query()
    assert not script.did(WaitUntil)


def test_a_shutdown_waits_for_the_running_batch() -> None:
    """It ends within the grace: nothing is interrupted, and its commit counts."""
    script = Script().owning(A).carrying(A)
    assert script.shut_down() == []
    assert script.logged() == ["ending"]
    script.wait(3_000)
    assert not script.did(InterruptBatch)
    stopped, _ = script.batch_ends({A: 15})
    assert isinstance(stopped, StopConsumingEvent)
    assert (stopped.partitions[0].next_offset, stopped.partitions[0].reason) == (
        15,
        StopReason.SHUTDOWN,
    )
    assert script.did(EndControlled) == [EndControlled(within_ms=7_000)]
    assert not script.did(ReadEnds)


def test_a_batch_that_would_not_end_within_the_grace_is_dropped() -> None:
    """After six tenths of it, so that the rest is left for an orderly end."""
    script = Script().owning(A).carrying(A)
    script.shut_down()
    script.wait(5_999)
    assert not script.did(InterruptBatch)
    assert script.state.wake_ms == 6_000
    script.wait(1)
    assert script.did(InterruptBatch)
    assert "batch_dropped" in script.logged()
    script.wait(100)
    assert not script.did(InterruptBatch), "once is enough"
    script.batch_ends(failures={A: passes("interrupted")})
    assert script.did(EndControlled)


def test_asked_twice_the_batch_is_not_waited_for() -> None:
    """Ctrl-C once more."""
    script = Script().owning(A).carrying(A)
    script.shut_down()
    script.shut_down()
    assert script.did(InterruptBatch)


def test_an_end_that_exceeds_the_grace_fails() -> None:
    """The batch hangs: the process ends without "controlled"."""
    script = Script().owning(A).carrying(A)
    script.shut_down()
    script.wait(9_999)
    assert not script.did(Fail)
    script.wait(1)
    (fail,) = script.did(Fail)
    assert isinstance(fail.error, GraceExceededError)
    assert "consumer 1" in str(fail.error)


def test_the_last_messages_always_have_some_time() -> None:
    """A batch that ends at the last moment does not cut them off."""
    script = Script().owning(A).carrying(A)
    script.shut_down()
    script.now_ms = 9_990
    script.batch_ends({A: 15})
    assert script.did(EndControlled) == [EndControlled(within_ms=500)]


def test_no_batch_begins_during_a_shutdown() -> None:
    """A look that was under way only updates the ends."""
    script = Script().owning(A, B).carrying(A)
    script.shut_down()
    script.ends({A: 99})
    assert not script.did(CarryBatch)
