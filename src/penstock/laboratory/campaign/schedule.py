"""Draws the faults of a campaign from a seed: the same seed gives the same faults. Pure.

The kinds are dealt like cards from a shuffled deck, so that a campaign of some minutes has nearly
all of them. The times are uniform, so that faults also meet; the last one comes at the end.
"""

import random
from collections.abc import Mapping

from penstock.laboratory.campaign.faults import Fault, Harm, Part

FIRST_S = 5.0
LAST_BEFORE_END_S = 2.0
PAUSE_MIN_S = 1.0
MADE_TOPICS = ("made-1", "made-2", "made-3")
MADE_PARTITIONS_MAX = 3
PARTITIONS_MAX = 12
DECK: tuple[tuple[Part, Harm, int], ...] = (
    (Part.CONSUMER, Harm.KILL, 5),
    (Part.CONSUMER, Harm.TERMINATE, 2),
    (Part.CONSUMER, Harm.PAUSE, 4),
    (Part.CONTROLLER, Harm.KILL, 2),
    (Part.CONTROLLER, Harm.TERMINATE, 1),
    (Part.CONTROLLER, Harm.PAUSE, 2),
    (Part.MONITOR, Harm.KILL, 1),
    (Part.MONITOR, Harm.TERMINATE, 1),
    (Part.MONITOR, Harm.PAUSE, 1),
    (Part.SPARK_SERVER, Harm.KILL, 1),
    (Part.SPARK_SERVER, Harm.TERMINATE, 1),
    (Part.SPARK_SERVER, Harm.PAUSE, 1),
    (Part.SPARK_WORKER, Harm.KILL, 2),
    (Part.SPARK_WORKER, Harm.TERMINATE, 1),
    (Part.SPARK_WORKER, Harm.PAUSE, 1),
    (Part.BROKER, Harm.KILL, 1),
    (Part.BROKER, Harm.TERMINATE, 1),
    (Part.BROKER, Harm.PAUSE, 1),
    (Part.TOPIC, Harm.GROW, 2),
    (Part.TOPIC, Harm.MAKE, 2),
    (Part.TOPIC, Harm.DELETE, 1),
)
_CARDS = tuple((part, harm) for part, harm, count in DECK for _ in range(count))
# How long a pause lasts, from and to.
PAUSES_S: Mapping[Part, tuple[float, float]] = {
    Part.CONSUMER: (3.0, 20.0),
    Part.CONTROLLER: (5.0, 20.0),
    Part.MONITOR: (5.0, 20.0),
    Part.SPARK_SERVER: (3.0, 15.0),
    Part.SPARK_WORKER: (2.0, 10.0),
    Part.BROKER: (5.0, 30.0),
}


def drawn_faults(
    seed: int, minutes: float, topics: Mapping[str, int], *, every_s: float = 10.0
) -> tuple[Fault, ...]:
    """One fault per `every_s` on average; `topics` are those there are, with their partitions."""
    chance = random.Random(f"campaign/{seed}")
    end_s = 60 * minutes
    count = max(1, round(end_s / every_s))
    last_s = max(FIRST_S, end_s - LAST_BEFORE_END_S)
    shares = sorted(chance.uniform(0.0, 1.0) for _ in range(count))
    # Stretched, so that the last fault comes at the end and the campaign has its length.
    times = [FIRST_S + (last_s - FIRST_S) * one / shares[-1] for one in shares]
    drawing = _Drawing(chance, dict(topics))
    return tuple(drawing.fault(round(at_s, 1), end_s) for at_s in times)


class _Drawing:
    def __init__(self, chance: random.Random, topics: dict[str, int]) -> None:
        self._chance = chance
        self._topics = topics
        self._cards: list[tuple[Part, Harm]] = []

    def fault(self, at_s: float, end_s: float) -> Fault:
        if not self._cards:
            self._cards = list(_CARDS)
            self._chance.shuffle(self._cards)
        part, harm = self._cards.pop()
        if part is Part.TOPIC:
            return self._topic_fault(at_s, harm)
        for_s = 0.0
        if harm is Harm.PAUSE:
            drawn_s = self._chance.uniform(*PAUSES_S[part])
            for_s = round(max(PAUSE_MIN_S, min(drawn_s, end_s - at_s)), 1)
        return Fault(at_s, part, harm, for_s=for_s, pick=self._chance.random())

    def _topic_fault(self, at_s: float, harm: Harm) -> Fault:
        """Where a topic cannot be harmed so, it is harmed in the way that is left."""
        free = [name for name in MADE_TOPICS if name not in self._topics]
        made = [name for name in MADE_TOPICS if name in self._topics]
        growing = sorted(name for name, n in self._topics.items() if n < PARTITIONS_MAX)
        if harm is Harm.GROW and growing:
            topic = self._chance.choice(growing)
            self._topics[topic] = min(
                PARTITIONS_MAX, self._topics[topic] + self._chance.randint(1, 2)
            )
            return Fault(at_s, Part.TOPIC, harm, topic=topic, partitions=self._topics[topic])
        if (harm is Harm.DELETE and made) or not free:
            topic = self._chance.choice(made)
            del self._topics[topic]
            return Fault(at_s, Part.TOPIC, Harm.DELETE, topic=topic)
        topic = self._chance.choice(free)
        self._topics[topic] = self._chance.randint(1, MADE_PARTITIONS_MAX)
        return Fault(at_s, Part.TOPIC, Harm.MAKE, topic=topic, partitions=self._topics[topic])
