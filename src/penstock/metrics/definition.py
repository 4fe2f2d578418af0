"""What a metric is.

Names follow Prometheus: base units at the end of the name, `_total` for what only grows, `_ratio`
from 0 to 1, `_info` for a constant 1 whose labels tell something. A value that is not known has no
series: it is never 0.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

PREFIX = "penstock_"
# Short work to long work: a commit takes milliseconds, a batch seconds, a move under load minutes.
SECONDS_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
# A step of the controller takes less than a millisecond in a small group.
STEP_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1)


class Kind(StrEnum):
    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Process(StrEnum):
    """Which process serves a metric."""

    EVERY = "every process"
    MONITOR = "monitor"
    CONTROLLER = "controller"
    CONSUMER = "consumer"


# Each definition is itself and no other: so a metric is found quickly among tens of thousands of
# samples.
@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """`labels` are those beside the group's. `sentence` says what the value means."""

    name: str
    process: Process
    kind: Kind
    sentence: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    group_label: str = "group"
    # Whether it is one of the names of other exporters, which are served only if asked for.
    is_foreign: bool = False

    def __post_init__(self) -> None:
        if self.kind is Kind.COUNTER and not self.name.endswith("_total"):
            raise ValueError(f"{self.name} only grows: its name must end with _total")
        if bool(self.buckets) != (self.kind is Kind.HISTOGRAM):
            raise ValueError(f"{self.name}: a histogram, and nothing else, has buckets")

    @property
    def is_of_partitions(self) -> bool:
        """Whether there is a series for each partition: many, and they can be switched off."""
        return "partition" in self.labels

    @property
    def unit(self) -> str:
        """The unit that the name ends with."""
        base = self.name.removesuffix("_total")
        for ending, unit in _UNITS.items():
            if base.endswith(ending):
                return unit
        return "1 where it holds, else 0" if self.name in _FLAGS else "number"


_UNITS = {
    "_bytes_per_second": "bytes per second",
    "_seconds": "seconds",
    "_bytes": "bytes",
    "_ratio": "ratio, 0 to 1 and more",
    "_records": "records",
    "_info": "always 1",
}
_FLAGS = frozenset(
    PREFIX + name
    for name in (
        "ready",
        "monitor_publishing",
        "controller_leading",
        "controller_state",
        "group_condition",
        "group_growth_held",
        "partition_stopped",
    )
)


class Sample(NamedTuple):
    """The value of one series now; the labels in the order of the definition."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


def gauge(process: Process, name: str, sentence: str, *labels: str) -> Metric:
    return Metric(PREFIX + name, process, Kind.GAUGE, sentence, labels)


def counter(process: Process, name: str, sentence: str, *labels: str) -> Metric:
    return Metric(PREFIX + name, process, Kind.COUNTER, sentence, labels)


def histogram(
    process: Process,
    name: str,
    sentence: str,
    *labels: str,
    buckets: tuple[float, ...] = SECONDS_BUCKETS,
) -> Metric:
    return Metric(PREFIX + name, process, Kind.HISTOGRAM, sentence, labels, buckets)
