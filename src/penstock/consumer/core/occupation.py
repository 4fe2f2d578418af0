"""What the consumer waits for, and what it works on: its reports say both.

A consumer that waits or works is alive, and the controller then waits with it. So only what is
true is said: a wait begins with the first failure, or with a ledger that is not read yet, and ends
with the first success.
"""

from penstock.consumer.core.step_draft import StepDraft
from penstock.messages import Wait, WaitsFor, Work, WorksOn


def begin_wait(draft: StepDraft, what: WaitsFor) -> None:
    """Note that this is missing. If it was already missing, keep the earlier time."""
    draft.waits.setdefault(what, draft.now_ms)


def end_wait(draft: StepDraft, what: WaitsFor) -> None:
    draft.waits.pop(what, None)


def waits_for(draft: StepDraft) -> Wait | None:
    """The longest wait: for what is away, or for a ledger that is not read yet."""
    waits = [(since_ms, what) for what, since_ms in draft.waits.items()]
    if draft.lookups and WaitsFor.KAFKA not in draft.waits:
        since_ms = min(lookup.since_ms for lookup in draft.lookups.values())
        waits.append((since_ms, WaitsFor.LAKE))
    if not waits:
        return None
    since_ms, what = min(waits)
    return Wait(what=what, since_ms_ago=draft.now_ms - since_ms)


def works_on(draft: StepDraft) -> Work | None:
    running = draft.batches.running
    if running is None:
        return None
    return Work(what=WorksOn.BATCH, since_ms_ago=draft.now_ms - running.began_ms)
