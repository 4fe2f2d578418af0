"""The cases of the study: each varies one thing from a common default. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.laboratory.studies.consumer.drain import Filling

CONNECT, LOCAL = "connect", "local"


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `consumer` holds the settings that differ from their defaults."""

    question: str
    label: str
    filling: Filling
    mode: str = CONNECT
    consumer: Mapping[str, float] = field(default_factory=dict)


def cases(total_bytes: int, *, quick: bool) -> list[Case]:
    """Every case of the study; `quick` keeps only the extremes."""

    def filling(**changes: object) -> Filling:
        given: dict[str, object] = {"total_bytes": total_bytes, **changes}
        return Filling(**given)  # type: ignore[arg-type] # names and types are just below

    found = [
        Case("partitions of one topic", str(count), filling(partitions_per_topic=count))
        for count in ((1, 24, 96) if quick else (1, 4, 24, 96, 240))
    ]
    found += [
        Case(
            "topics, 24 partitions in all",
            str(count),
            filling(topics=count, partitions_per_topic=24 // count),
        )
        for count in ((6, 24) if quick else (2, 6, 12, 24))
    ]
    found += [
        Case("record size", f"{size} B", filling(record_bytes=size))
        for size in ((200, 10_000) if quick else (200, 1_000, 10_000, 100_000))
    ]
    found += [
        Case("compression", name, filling(compression=name, compressible=name != "none"))
        for name in (("none", "zstd") if quick else ("none", "lz4", "zstd", "gzip"))
    ]
    found += [
        Case(
            "batch time",
            f"{seconds:g} s",
            filling(),
            consumer={"batch_time": seconds, "backlog_batch_time": seconds},
        )
        for seconds in ((0.5, 4.0) if quick else (0.5, 1.0, 2.0, 4.0, 8.0))
    ]
    found += [
        Case("Spark", label, filling(), mode=mode)
        for mode, label in ((CONNECT, "Connect server"), (LOCAL, "local[2] in the consumer"))
    ]
    return found
