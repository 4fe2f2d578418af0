"""An orderly end: give everything up, wait for the running batch, and no longer than the grace."""

from collections.abc import Iterator

from penstock.consumer.core import owned_partitions
from penstock.consumer.core.effects import Fail, InterruptBatch, LogLevel
from penstock.consumer.core.inputs import ShutdownAsked
from penstock.consumer.core.state import Shutdown
from penstock.consumer.core.step_draft import StepDraft
from penstock.errors import PenstockError
from penstock.model.changed import changed

# The share of the grace period that the running batch may use before it is dropped.
# No setting: `consumer.grace` is the one to change; the rest is for the last messages.
BATCH_SHARE_OF_GRACE = 0.6


class GraceExceededError(PenstockError):
    """The orderly end took too long; the state directory still says "running"."""


def asked(draft: StepDraft, given: ShutdownAsked) -> None:
    now = draft.now_ms
    if draft.shutdown is not None:
        _drop_batch(draft, draft.shutdown, "the shutdown was asked for twice")
        return
    grace_ms = draft.settings.grace_ms
    draft.shutdown = Shutdown(now + grace_ms, now + round(BATCH_SHARE_OF_GRACE * grace_ms))
    draft.own = changed(draft.own, is_shutting_down=True)
    is_running = draft.batches.running is not None
    draft.log(LogLevel.INFO, "ending", signal=given.signal, batch_runs=is_running)
    owned_partitions.give_up_all(draft)


def watch(draft: StepDraft) -> None:
    """Drop the batch when its share of the grace is over; fail when all of it is."""
    shutdown = draft.shutdown
    if shutdown is None:
        return
    if shutdown.drop_batch_ms is not None and draft.now_ms >= shutdown.drop_batch_ms:
        _drop_batch(draft, shutdown, "it would not end within the grace period")
    if draft.now_ms >= shutdown.deadline_ms:
        draft.do(
            Fail(
                GraceExceededError(
                    "The batch did not end within the grace period of consumer "
                    f"{draft.own.consumer_id}.",
                    remedy="Raise consumer.grace, or lower consumer.batch_time.",
                )
            )
        )


def _drop_batch(draft: StepDraft, shutdown: Shutdown, why: str) -> None:
    """A shutdown that has not ended waits for a batch: make it fail; it is then dropped whole."""
    draft.shutdown = changed(shutdown, drop_batch_ms=None)
    draft.log(LogLevel.WARNING, "batch_dropped", why=why)
    draft.do(InterruptBatch())


def due_times_ms(draft: StepDraft) -> Iterator[int]:
    if draft.shutdown is not None:
        yield draft.shutdown.deadline_ms
        if draft.shutdown.drop_batch_ms is not None:
            yield draft.shutdown.drop_batch_ms
