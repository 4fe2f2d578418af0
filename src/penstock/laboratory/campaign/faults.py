"""The faults of a campaign: what is harmed, how, when, and what came of it. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Part(StrEnum):
    """What is harmed."""

    CONSUMER = "consumer"
    CONTROLLER = "controller"
    MONITOR = "monitor"
    SPARK_SERVER = "Spark server"
    SPARK_WORKER = "Spark worker"
    BROKER = "broker"
    TOPIC = "topic"


# Without these nothing can be committed, so the time without them is told apart.
SERVERS = frozenset({Part.BROKER, Part.SPARK_SERVER})
# What the whole group depends on.
SHARED = SERVERS | {Part.CONTROLLER}


class Harm(StrEnum):
    """How it is harmed."""

    KILL = "killed with -9"
    TERMINATE = "ended with TERM"
    PAUSE = "paused"
    MAKE = "made"
    GROW = "grown"
    DELETE = "deleted"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault as it is planned.

    `for_s` is the length of a pause. `pick`, from 0 to 1, chooses among the processes that there
    are at that time. `topic` and `partitions` belong to the faults of topics.
    """

    at_s: float
    part: Part
    harm: Harm
    for_s: float = 0.0
    pick: float = 0.0
    topic: str = ""
    partitions: int = 0

    @property
    def kind(self) -> str:
        return f"{self.part} {self.harm}"


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault as it took place.

    `over_s` is when a pause ended; a kill is over at once. `back_s` is when a broker or a Spark
    server answered again. `consumer` is the number of the consumer that was hit.
    """

    fault: Fault
    at_s: float
    over_s: float
    back_s: float
    consumer: int | None = None

    @property
    def explanation(self) -> str:
        number = "" if self.consumer is None else f" {self.consumer}"
        topic = f" {self.fault.topic}" if self.fault.topic else ""
        seconds = f" for {self.over_s - self.at_s:.0f} s" if self.fault.harm is Harm.PAUSE else ""
        return f"{self.fault.part}{number}{topic} {self.fault.harm}{seconds}"
