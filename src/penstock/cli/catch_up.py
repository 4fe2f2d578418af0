"""What waits in the logs before a group starts, and how long a group would need for it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.model import TopicPartition
from penstock.model.sentences import counted, duration_text, speed_text


@dataclass(frozen=True, slots=True)
class CatchUp:
    """What a group has to carry before it keeps up."""

    records: int
    # None where the size of records is unknown.
    log_bytes: float | None
    # What the consumers can carry beside what is written.
    spare_bytes_per_s: float
    consumers: int
    # None where it is unknown, or where the consumers have nothing to spare.
    seconds: float | None

    def text(self) -> str:
        if self.records == 0:
            return "Nothing waits: every record is in the lake."
        records = f"{self.records:,} {'record' if self.records == 1 else 'records'}"
        waiting = f"Waiting now, not in the lake: {records}."
        if self.log_bytes is None:
            return f"{waiting} How long a group needs for them is not known: nothing is written."
        consumers = counted(self.consumers, "consumer")
        if self.seconds is None:
            return f"{waiting} {consumers} would have nothing to spare for them."
        time, spare = duration_text(self.seconds), speed_text(self.spare_bytes_per_s)
        return (
            f"{waiting} {consumers} would carry them in about {time}, with the {spare} of "
            "packing.capacity that the load leaves."
        )


def catch_up(
    rows: Sequence[Mapping[str, Any]],
    ledger: Mapping[TopicPartition, int | None],
    *,
    consumers: int,
    capacity_bytes_per_s: float,
) -> CatchUp:
    """`rows` are the newest measurement, `ledger` the next offsets that the lake has."""
    records, log_bytes, written = 0, 0.0, 0.0
    sizes = [one["mean_log_bytes_per_record"] for one in rows]
    known = [size for size in sizes if size]
    usual = sum(known) / len(known) if known else None
    for row, size in zip(rows, sizes, strict=True):
        written += row["write_speed_bytes_per_s"] or 0.0
        if row["end_offset"] is None:
            continue
        carried = ledger.get(TopicPartition(row["topic"], row["partition"])) or 0
        waiting = max(0, row["end_offset"] - max(row["start_offset"] or 0, carried))
        records += waiting
        log_bytes += waiting * (size or usual or 0.0)
    working = max(1, consumers)
    spare = working * capacity_bytes_per_s - written
    if records == 0:
        return CatchUp(0, 0.0, spare, working, 0.0)
    if usual is None:
        return CatchUp(records, None, spare, working, None)
    return CatchUp(records, log_bytes, spare, working, log_bytes / spare if spare > 0 else None)
