"""Keeps records that cannot be decoded, exactly once, in the dead-letter table.

Two tables cannot share a commit. So the dead letters of a batch commit first, by a compare-and-set
in the dead-letter table's own ledger, and then the batch's table. A crash in between leaves the
dead letters' ledger ahead. The next batch over that range finds the records that are already kept
and leaves them out before the transformation sees them, so each record is in one place.

Before its first batch of a partition, a new owner commits its epoch to the dead letters' ledger.
That fences an older owner: its dead letters are refused from then on, and those it committed
before are found by the look-up. So an old owner with another transformation cannot keep a record
as a dead letter that the new owner decodes.
"""

import json
from collections.abc import Sequence
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import functions

from penstock.model import TopicPartition
from penstock.pipeline.batch import PlannedRange, ledger_position_text
from penstock.pipeline.lake_commit import LakeTable, LedgerMove, StaleLedgerError


def _struct(fields: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields
        ],
    }


_HEADER = _struct([("key", "string"), ("value", "binary")])
# Tables of older releases get the last two columns with their next dead letter.
LETTERS_SCHEMA = json.dumps(
    _struct(
        [
            ("topic", "string"),
            ("partition", "integer"),
            ("offset", "long"),
            ("reason", "string"),
            ("key", "binary"),
            ("value", "binary"),
            ("topic_id", "string"),
            ("timestamp", "timestamp"),
            ("headers", {"type": "array", "elementType": _HEADER, "containsNull": True}),
        ]
    )
)
FENCE_ATTEMPTS = 5


def dead_letter_folder(
    folder: str, reference_range: PlannedRange, ledger_offset: int | None
) -> str:
    """The folder of a batch's dead letters; its ledger entry is the dead letters' own."""
    writer, _, number = folder.rpartition("/")
    number = number.partition(".")[0]
    topic_id, partition = reference_range.topic_id, reference_range.partition
    return f"{writer}/{number}.{ledger_position_text(topic_id, partition, ledger_offset)}"


def with_topic_ids(letters: Any, planned: Sequence[PlannedRange]) -> Any:
    """Add the topic's id: a topic that is made again uses the same offsets again."""
    ids = sorted({(one.partition.topic, one.topic_id) for one in planned})
    pairs = [functions.lit(text) for pair in ids for text in pair]
    return letters.withColumn("topic_id", functions.create_map(*pairs)[functions.col("topic")])


def with_time_and_headers(letters: Any, raw: Any) -> Any:
    """Add what the transformation need not keep, from the records themselves."""
    place = ["topic", "partition", "offset"]
    rest = raw.select(*place, "timestamp", "headers")
    found = rest.join(functions.broadcast(letters), place, "inner")
    return found.select(*letters.columns, "timestamp", "headers")


def ledger_of_dead_letters(
    table: LakeTable, group: str, planned: Sequence[PlannedRange]
) -> dict[TopicPartition, int | None]:
    ids = {one.partition: one.application_id(group) for one in planned}
    known = table.next_offsets(ids.values())
    return {partition: known[name] for partition, name in ids.items()}


def put_up_fence(table: LakeTable, group: str, planned: Sequence[PlannedRange], name: str) -> None:
    """Once per claim: from here on, dead letters of an older epoch are refused."""
    new = [
        one
        for one in sorted(planned)
        if one.claim is not None and not table.has_claimed(one.application_id(group), one.claim)
    ]
    if not new:
        return
    table.open_for(LETTERS_SCHEMA, ())
    for attempt in range(1, FENCE_ATTEMPTS + 1):
        ledger = ledger_of_dead_letters(table, group, new)
        moves = [_fence(one, group, ledger[one.partition]) for one in new]
        try:
            table.commit(moves, [], batch=f"{name}/fence-{attempt}")
        except StaleLedgerError:
            # An older owner's dead letters came first: look again. Behind a newer fence, give up.
            if attempt == FENCE_ATTEMPTS or table.are_outdated(moves):
                raise
        else:
            return


def _fence(one: PlannedRange, group: str, ledger: int | None) -> LedgerMove:
    at = one.range.start if ledger is None else ledger
    return LedgerMove(one.partition, one.application_id(group), ledger, at, one.claim)


def already_kept(
    table: LakeTable,
    planned: Sequence[PlannedRange],
    ledger: dict[TopicPartition, int | None],
) -> list[tuple[str, int, int]]:
    """Dead letters in these ranges from an earlier batch whose table never committed."""
    ahead = [one for one in sorted(planned) if (ledger[one.partition] or 0) > one.range.start]
    if not ahead:
        return []
    # Imported here: it takes more than ten megabytes, and few consumers ever need it.
    import pyarrow.dataset  # noqa: PLC0415 -- see above

    field = pyarrow.dataset.field
    stored = DeltaTable(table.storage.uri, storage_options=table.storage.options or None)
    dataset = stored.to_pyarrow_dataset()
    kept: list[tuple[str, int, int]] = []
    for one in ahead:
        place = one.partition
        found = dataset.to_table(
            columns=["offset"],
            filter=(field("topic") == place.topic)
            & (field("topic_id") == one.topic_id)
            & (field("partition") == place.partition)
            & (field("offset") >= one.range.start)
            & (field("offset") < one.range.end),
        )
        kept += [(place.topic, place.partition, offset) for offset in found["offset"].to_pylist()]
    return sorted(set(kept))


def without(session: Any, raw: Any, kept: Sequence[tuple[str, int, int]]) -> Any:
    """The records without those that are kept already."""
    if not kept:
        return raw
    known = session.createDataFrame(list(kept), "topic string, partition int, offset bigint").hint(
        "broadcast"
    )
    return raw.join(known, ["topic", "partition", "offset"], "left_anti").select(*raw.columns)


def dead_letter_moves(
    group: str, planned: Sequence[PlannedRange], ledger: dict[TopicPartition, int | None]
) -> list[LedgerMove]:
    return [
        LedgerMove(
            one.partition,
            one.application_id(group),
            ledger[one.partition],
            max(one.range.end, ledger[one.partition] or 0),
            one.claim,
        )
        for one in sorted(planned)
    ]
