"""The consumer: `step(state, given) -> (state, effects)`. Everything else here is a detail.

The table below says which handler takes which input. An input that is not in it raises. After
every input the core asks for what is due: ledger entries, log sizes, the ends of the logs.
"""

from collections.abc import Callable
from typing import Any

from penstock.consumer.core import (
    batch_planning,
    batch_results,
    commands,
    ledger_lookup,
    log_sizes,
    occupation,
    reports,
    shutdown,
    spark,
    table_upkeep,
)
from penstock.consumer.core.effects import Effect, Fail, StartSpark
from penstock.consumer.core.inputs import (
    BROKEN,
    BatchCrashed,
    BatchEnded,
    CallFailed,
    EndsNotRead,
    EndsRead,
    Input,
    LedgerNotRead,
    LedgerRead,
    LogSizesNotRead,
    LogSizesRead,
    MessagesRead,
    OrphansNotRemoved,
    ShutdownAsked,
    SparkNotStarted,
    SparkStarted,
    StartOffsetsNotRead,
    StartOffsetsRead,
    TablesKept,
    TablesNotKept,
    Tick,
)
from penstock.consumer.core.ownership import Ownership
from penstock.consumer.core.settings import CoreSettings
from penstock.consumer.core.state import ConsumerState
from penstock.consumer.core.step_draft import StepDraft
from penstock.messages import PreviousShutdown, WaitsFor


def begin(
    settings: CoreSettings, own: Ownership, *, now_ms: int
) -> tuple[ConsumerState, tuple[Effect, ...]]:
    """A new incarnation: start Spark, report at once, and clean up after one that was cut short.

    What an earlier incarnation left behind can be removed only after the ledger has moved on, so
    the clean-up is repeated (see `reports.remove_orphans`).
    """
    period_ms = settings.upkeep_period_ms
    was_cut_short = own.previous_shutdown in {
        PreviousShutdown.UNCONTROLLED,
        PreviousShutdown.UNKNOWN,
    }
    state = ConsumerState(
        settings=settings,
        ownership=own,
        batches=batch_planning.first_batch_state(settings),
        report_due_ms=now_ms,
        reported_ms=now_ms,
        upkeep_due_ms=now_ms + period_ms if period_ms else None,
        orphan_removals_ms=reports.orphan_removals(now_ms) if was_cut_short else (),
    )
    draft = StepDraft(state, now_ms)
    occupation.begin_wait(draft, WaitsFor.SPARK)
    draft.do(StartSpark())
    return draft.finish(_due_ms(draft))


def step(state: ConsumerState, given: Input) -> tuple[ConsumerState, tuple[Effect, ...]]:
    """One input, one new state, and what is to be done. After the end nothing is."""
    handle = HANDLERS[type(given)]
    if state.ownership.has_ended:
        return state, ()
    draft = StepDraft(state, given.now_ms)
    if isinstance(given, CallFailed) and isinstance(given.error, BROKEN):
        draft.do(Fail(given.error))
    else:
        handle(draft, given)
        _ask_for_what_is_due(draft)
    return draft.finish(_due_ms(draft))


def _ask_for_what_is_due(draft: StepDraft) -> None:
    ledger_lookup.ask(draft)
    log_sizes.ask(draft)
    batch_planning.look(draft)


def _due_ms(draft: StepDraft) -> int:
    due = [draft.report_due_ms]
    if draft.upkeep_due_ms is not None:
        due.append(draft.upkeep_due_ms)
    due += draft.orphan_removals_ms[:1]
    for part in (ledger_lookup, log_sizes, batch_planning, shutdown):
        due += part.due_times_ms(draft)
    return min(due)


def _tick(draft: StepDraft, given: Tick) -> None:
    reports.report(draft, given)
    table_upkeep.keep_tables(draft)
    reports.remove_orphans(draft)
    shutdown.watch(draft)


def _crashed(draft: StepDraft, given: BatchCrashed) -> None:
    draft.do(Fail(given.error))


HANDLERS: dict[type[Input], Callable[[StepDraft, Any], None]] = {
    Tick: _tick,
    MessagesRead: commands.read_messages,
    LedgerRead: ledger_lookup.read,
    LedgerNotRead: ledger_lookup.not_read,
    EndsRead: batch_planning.ends_read,
    EndsNotRead: batch_planning.ends_not_read,
    LogSizesRead: log_sizes.read,
    LogSizesNotRead: log_sizes.not_read,
    StartOffsetsRead: batch_results.start_offsets_read,
    StartOffsetsNotRead: batch_results.start_offsets_not_read,
    SparkStarted: spark.started,
    SparkNotStarted: spark.not_started,
    BatchEnded: batch_results.ended,
    BatchCrashed: _crashed,
    TablesKept: table_upkeep.tables_kept,
    TablesNotKept: table_upkeep.tables_not_kept,
    OrphansNotRemoved: reports.orphans_not_removed,
    ShutdownAsked: shutdown.asked,
}
