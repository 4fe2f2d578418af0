"""Which tables this consumer keeps in shape, and when.

One consumer a table does it: the one that carries partition 0 of the table's first topic. Nobody
has to be told. While a partition moves, two may believe so, or none: the table's ledger lets one
of two joins pass, and nothing is lost by waiting.
"""

from collections.abc import Iterable, Mapping

from penstock.consumer.core.effects import KeepTables
from penstock.consumer.core.inputs import TablesKept, TablesNotKept
from penstock.consumer.core.step_draft import StepDraft
from penstock.model import TopicPartition

FIRST_PARTITION = 0


def tables_to_keep(
    owned: Iterable[TopicPartition], table_keepers: Mapping[str, str]
) -> tuple[str, ...]:
    """The tables of the topics whose partition 0 is among these.

    A table that `table_keepers` does not name has the name of its topic.
    """
    topics = {one.topic for one in owned if one.partition == FIRST_PARTITION}
    named = {table for table, topic in table_keepers.items() if topic in topics}
    return tuple(sorted(named | (topics - table_keepers.keys())))


def keep_tables(draft: StepDraft) -> None:
    """Keep this consumer's tables, if that is due."""
    if draft.upkeep_due_ms is None or draft.now_ms < draft.upkeep_due_ms:
        return
    tables = tables_to_keep(draft.owned, draft.settings.table_keepers)
    if tables and not draft.own.is_shutting_down:
        draft.upkeep_due_ms = None
        draft.do(KeepTables(tables))
    else:
        draft.upkeep_due_ms = draft.now_ms + draft.settings.upkeep_period_ms


def tables_kept(draft: StepDraft, given: TablesKept) -> None:
    """Rest after the work; what is left over is done after the rest, all else after a period."""
    _rest(draft, given.processor_s, 0 if given.has_more else draft.settings.upkeep_period_ms)


def tables_not_kept(draft: StepDraft, given: TablesNotKept) -> None:
    _rest(draft, given.processor_s, draft.settings.upkeep_period_ms)
    draft.log_failure("table_not_kept_up", given.error)


def _rest(draft: StepDraft, processor_s: float, shortest_ms: int) -> None:
    rest_ms = round(processor_s * 1000 / draft.settings.upkeep_share)
    draft.upkeep_due_ms = draft.now_ms + max(rest_ms, shortest_ms)
