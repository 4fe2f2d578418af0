"""How long the codec takes: 5,000 partitions of speeds, and events about 10,000 partitions.

`python benchmarks/codec.py` prints a table; the exit code is 1 when a bound is broken. The bounds
leave the monitor and the controller most of a core each second.
"""

import sys
import time
from collections.abc import Callable

from penstock.messages import (
    Encoded,
    Message,
    PartitionSpeed,
    SpeedSource,
    StartConsumingEvent,
    StartedPartition,
    WriteSpeedMeasurement,
    cut,
    decode,
    encode,
)

ROUNDS = 5
SPEEDS, EVENTS = 5_000, 10_000


def measurements() -> list[Message]:
    rows = [
        PartitionSpeed(
            topic="data-engineering-orders",
            partition=number,
            write_speed_bytes_per_s=1.5e6 + number / 7,
            write_speed_raw_bytes_per_s=1.5e6 + number / 3,
            records_per_s=1000.5,
            mean_log_bytes_per_record=1500.1,
            start_offset=0,
            end_offset=number * 1_000_000,
            source=SpeedSource.LOG_DIRS,
        )
        for number in range(SPEEDS)
    ]
    pieces = cut(rows)
    return [
        WriteSpeedMeasurement(
            monitor_incarnation=1,
            sequence=1,
            part=part,
            parts=len(pieces),
            published_at_unix_ms=1,
            age_ms=1,
            window_ms=30_000,
            partitions=piece,
        )
        for part, piece in enumerate(pieces, start=1)
    ]


def events() -> list[Message]:
    rows = [
        StartedPartition(
            topic="data-engineering-orders", partition=n, epoch=f"7.{n}", next_offset=n
        )
        for n in range(EVENTS)
    ]
    return [
        StartConsumingEvent(
            consumer_id=1, incarnation=1, controller_epoch=7, plan_number=1, partitions=piece
        )
        for piece in cut(rows)
    ]


def best_ms(work: Callable[[], object]) -> float:
    """The fastest of some rounds: what the code costs when nobody else is on the machine."""
    times = []
    for _ in range(ROUNDS):
        before = time.perf_counter()
        work()
        times.append((time.perf_counter() - before) * 1_000)
    return min(times)


def main() -> int:
    rows: list[tuple[str, Callable[[], object], float]] = []
    for name, make in ((f"{SPEEDS} speeds", measurements), (f"{EVENTS} started", events)):
        encoded: list[Encoded] = [encode(message) for message in make()]
        rows.append((f"{name}: make and encode", lambda m=make: [encode(x) for x in m()], 100.0))
        rows.append(
            (f"{name}: decode", lambda e=encoded: [decode(x.value, x.headers) for x in e], 150.0)
        )
    broken = False
    for name, work, bound_ms in rows:
        took = best_ms(work)
        broken |= took > bound_ms
        sys.stdout.write(f"{name:32} {took:8.1f} ms   at most {bound_ms:.0f} ms\n")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
