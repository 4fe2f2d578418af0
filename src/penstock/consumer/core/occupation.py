"""What the consumer waits for, and what it works on: its reports say both.

A consumer that waits or works is alive, and the controller then waits with it. So only what is
true is said: a wait begins with the first failure, or with a ledger that is not read yet, and ends
with the first success.

What is away is away for all: with the first success, everything that was put off for it is due.
"""

from penstock.consumer.core.step_draft import StepDraft
from penstock.messages import Wait, WaitsFor, Work, WorksOn
from penstock.model.changed import changed

# What was away for a shorter time is retried that soon anyway. And a success beside failures, which
# come and go by turns, does not repeat what failed at once.
AWAY_MS_MIN = 1_000


def begin_wait(draft: StepDraft, what: WaitsFor) -> None:
    """Note that this is missing. If it was already missing, keep the earlier time."""
    draft.waits.setdefault(what, draft.now_ms)


def end_wait(draft: StepDraft, what: WaitsFor) -> None:
    """It is there."""
    since_ms = draft.waits.pop(what, None)
    if since_ms is not None and draft.now_ms - since_ms >= AWAY_MS_MIN:
        _cut_waits_short(draft, what)


def _cut_waits_short(draft: StepDraft, what: WaitsFor) -> None:
    now = draft.now_ms
    for partition, lookup in draft.lookups.items():
        if lookup.shared is what and lookup.not_before_ms > now:
            draft.lookups[partition] = changed(lookup, not_before_ms=now)
    for partition, row in draft.progress.items():
        if row.shared is what and row.not_before_ms > now:
            draft.progress[partition] = changed(row, not_before_ms=now)


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
