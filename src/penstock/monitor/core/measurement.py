"""Makes messages of speeds: one row per partition, in as many parts as the size limit demands.

Unknown values are left out of a row, so that none is read as zero. Numbers are rounded to the
precision that planning needs, which halves the size of a message.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.messages import WriteSpeedMeasurement, cut
from penstock.monitor.core.filters import Row
from penstock.monitor.core.meter import MeasuredSpeeds

_SPEED_DIGITS = 1
_MEAN_DIGITS = 2


def measurement_parts(
    speeds: MeasuredSpeeds,
    *,
    monitor_incarnation: int,
    sequence: int,
    published_at_unix_ms: int,
    window_s: float,
) -> Iterator[WriteSpeedMeasurement]:
    """At least one message: without any partition it says that there is none."""
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


def measured_rows(speeds: MeasuredSpeeds) -> list[dict[str, Any]]:
    """One row per partition, sorted by name. None is unknown, and is not encoded."""
    columns = zip(
        speeds.names,
        speeds.topic_ids,
        _known(speeds.bytes_per_s, _SPEED_DIGITS),
        _known(speeds.raw_bytes_per_s, _SPEED_DIGITS),
        _known(speeds.records_per_s, _SPEED_DIGITS),
        _known(speeds.mean_bytes_per_record, _MEAN_DIGITS),
        _known(speeds.start_offset),
        _known(speeds.end_offset),
        strict=True,
    )
    source = speeds.source
    return [
        {
            "topic": name[0],
            "partition": name[1],
            "topic_id": topic_id or None,
            "write_speed_bytes_per_s": speed,
            "write_speed_raw_bytes_per_s": raw_speed,
            "records_per_s": records,
            "mean_log_bytes_per_record": mean,
            "start_offset": None if start is None else int(start),
            "end_offset": None if end is None else int(end),
            "source": None if speed is None else source,
        }
        for name, topic_id, speed, raw_speed, records, mean, start, end in columns
    ]


def _known(row: Row, digits: int = 0) -> list[float | None]:
    """Rounded; None where a value is unknown or not finite."""
    known = np.isfinite(row)
    rounded = np.round(row, digits)
    return [
        value if is_known else None
        for value, is_known in zip(rounded.tolist(), known.tolist(), strict=True)
    ]
