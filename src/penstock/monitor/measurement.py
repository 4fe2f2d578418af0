"""Speeds as messages: one row a partition, in as many parts as the size limit asks for.

What is unknown is left out of a row, so it can never be read as zero. Numbers are rounded to what a
plan can use, which halves the bytes of a message.
"""

import math
from collections.abc import Iterator
from typing import Any

from penstock.messages import WriteSpeedMeasurement, cut
from penstock.monitor.meter import Speeds

_SPEED_DIGITS = 1
_MEAN_DIGITS = 2


def measurement_parts(
    speeds: Speeds,
    *,
    monitor_incarnation: int,
    sequence: int,
    published_at_unix_ms: int,
    window_s: float,
) -> Iterator[WriteSpeedMeasurement]:
    """At least one message, even without any partition: that is knowledge too."""
    pieces = cut(measured_rows(speeds))
    for number, piece in enumerate(pieces, start=1):
        yield WriteSpeedMeasurement.model_validate(
            {
                "monitor_incarnation": monitor_incarnation,
                "sequence": sequence,
                "part": number,
                "parts": len(pieces),
                "published_at_unix_ms": published_at_unix_ms,
                "age_ms": round(speeds.newest_sample_age_s * 1000),
                "window_ms": round(window_s * 1000),
                "partitions": piece,
            }
        )


def measured_rows(speeds: Speeds) -> list[dict[str, Any]]:
    """One row a partition, sorted by name; keys whose value is unknown are absent."""
    columns = {
        "write_speed_bytes_per_s": (speeds.bytes_per_s, _SPEED_DIGITS),
        "write_speed_raw_bytes_per_s": (speeds.raw_bytes_per_s, _SPEED_DIGITS),
        "records_per_s": (speeds.records_per_s, _SPEED_DIGITS),
        "mean_log_bytes_per_record": (speeds.mean_bytes_per_record, _MEAN_DIGITS),
    }
    rows: list[dict[str, Any]] = [
        {"topic": topic, "partition": partition} for topic, partition in speeds.names
    ]
    for row, topic_id in zip(rows, speeds.topic_ids, strict=True):
        if topic_id:
            row["topic_id"] = topic_id
    for name, (values, digits) in columns.items():
        _put_known(rows, name, [round(value, digits) for value in values.tolist()])
    _put_known(rows, "start_offset", speeds.start_offset.tolist(), int)
    _put_known(rows, "end_offset", speeds.end_offset.tolist(), int)
    for row in rows:
        if "write_speed_bytes_per_s" in row:
            row["source"] = speeds.source
    return rows


def _put_known(
    rows: list[dict[str, Any]],
    name: str,
    values: list[float],
    kind: type[float] | type[int] = float,
) -> None:
    for row, value in zip(rows, values, strict=True):
        if math.isfinite(value):
            row[name] = kind(value)
