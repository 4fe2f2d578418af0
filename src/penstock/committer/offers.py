"""A batch as a message, and back."""

import hashlib
import hmac

from pydantic import ValidationError

from penstock.messages.commits import (
    OFFERED_FILES_MAX,
    OFFERED_PARTITIONS_MAX,
    OfferedBatch,
    OfferedFile,
    OfferedRange,
    PartitionValue,
)
from penstock.model import Epoch
from penstock.pipeline.batch import Claim, Writer, application_id
from penstock.pipeline.joint_table import BatchToCommit
from penstock.pipeline.ledger_moves import LedgerMove
from penstock.pipeline.written_files import WrittenFile

# A larger one is committed by its writer: a topic is no place for it.
OFFER_BYTES_MAX = 250_000
_UNSIGNED = "0" * 64


def group_folder(group: str) -> str:
    """Below it are the folders of all writers of the group."""
    return f"data/{group}/"


def offer_of(
    table: str, batch: BatchToCommit, group: str, writer: Writer, key: bytes
) -> OfferedBatch | None:
    """Signed with the key; None for what does not fit into a message."""
    folder = f"{group_folder(group)}{writer}/"
    if len(batch.files) > OFFERED_FILES_MAX or len(batch.moves) > OFFERED_PARTITIONS_MAX:
        return None
    try:
        offer = OfferedBatch(
            table=table,
            consumer_id=writer.consumer_id,
            incarnation=writer.incarnation,
            batch=batch.name.removeprefix(folder),
            table_mark=batch.table_mark,
            ranges=tuple(_range_of(move, batch) for move in batch.moves),
            files=tuple(_file_of(file, batch.name) for file in batch.files),
            signature=_UNSIGNED,
        )
    except ValidationError:
        return None
    # What another would make of it is what it is, or it is not offered.
    if batch_of(offer, group) != batch or len(_signed_text(offer, group)) > OFFER_BYTES_MAX:
        return None
    return offer.model_copy(update={"signature": _signature(offer, key, group)})


def is_signed(offer: OfferedBatch, key: bytes, group: str) -> bool:
    """Whether who has made it, for this group, can read the folder of the table."""
    return hmac.compare_digest(offer.signature, _signature(offer, key, group))


def _signature(offer: OfferedBatch, key: bytes, group: str) -> str:
    return hmac.new(key, _signed_text(offer, group), hashlib.sha256).hexdigest()


def _signed_text(offer: OfferedBatch, group: str) -> bytes:
    """The name of the group ends where the first brace begins the offer: it has none itself."""
    return f"{group}{offer.model_dump_json(exclude={'signature'}, exclude_none=True)}".encode()


def _range_of(move: LedgerMove, batch: BatchToCommit) -> OfferedRange:
    claim = move.claim
    start, end = batch.ranges[move.application_id]
    return OfferedRange(
        topic=move.partition.topic,
        partition=move.partition.partition,
        topic_id=move.application_id.split("/")[1],
        ledger_offset=move.expected,
        start=start,
        end=end,
        authority=None if claim is None else claim.authority,
        epoch=None if claim is None else str(claim.epoch),
        leader_epoch=move.leader_epoch,
    )


def _file_of(file: WrittenFile, folder: str) -> OfferedFile:
    return OfferedFile(
        path=file.path.removeprefix(f"{folder}/"),
        size_bytes=file.size_bytes,
        modified_at_ms=file.modified_at_ms,
        records=file.records,
        partition_values=tuple(
            PartitionValue(column=column, value=value)
            for column, value in file.partition_values.items()
        ),
        statistics=file.stats,
    )


def batch_of(offer: OfferedBatch, group: str) -> BatchToCommit:
    """Of this group, whatever the offer says; its files are below the folder of its sender."""
    writer = Writer(offer.consumer_id, offer.incarnation)
    name = f"{group_folder(group)}{writer}/{offer.batch}"
    moves = tuple(_move_of(one, group) for one in offer.ranges)
    return BatchToCommit(
        name,
        offer.table_mark,
        moves,
        tuple(_written(one, name) for one in offer.files),
        {
            move.application_id: (one.start, one.end)
            for move, one in zip(moves, offer.ranges, strict=True)
        },
    )


def _move_of(one: OfferedRange, group: str) -> LedgerMove:
    partition = one.topic_partition
    has_claim = one.authority is not None and one.epoch is not None
    return LedgerMove(
        partition,
        application_id(group, one.topic_id, partition),
        one.ledger_offset,
        one.end,
        Claim(one.authority or "", Epoch.parse(one.epoch or "")) if has_claim else None,
        one.leader_epoch,
    )


def _written(one: OfferedFile, folder: str) -> WrittenFile:
    return WrittenFile(
        path=f"{folder}/{one.path}",
        size_bytes=one.size_bytes,
        modified_at_ms=one.modified_at_ms,
        records=one.records,
        partition_values={each.column: each.value for each in one.partition_values},
        stats=one.statistics,
    )
