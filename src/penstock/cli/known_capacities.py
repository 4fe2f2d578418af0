"""What `penstock recommend` knows of what one consumer carries, and how that is known. Pure.

A figure that a person has set is that of every topic. Else a group that runs has published what it
measured, and a person may give what was calibrated. Of the other topics it is assumed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.controller.core.capacity import (
    Capacities,
    Source,
    capacities_from,
    first_capacities,
)
from penstock.controller.core.settings import ControllerSettings
from penstock.controller.core.state import KnownCapacity
from penstock.packing.problem import CAPACITY_BYTES_PER_S_MIN

# Of several sources the least certain is told.
_LEAST_CERTAIN_FIRST = (Source.ASSUMED, Source.CALIBRATED, Source.TOGETHER, Source.MEASURED)


@dataclass(frozen=True, slots=True)
class KnownCapacities:
    """What one usual consumer carries, in bytes of log a second."""

    # What is set, or else assumed.
    first_bytes_per_s: float
    is_set: bool
    by_topic: Mapping[str, KnownCapacity] = field(default_factory=dict)

    def weighed(self, written: Mapping[str, float]) -> Capacities:
        """What follows for topics that are written at these speeds, as the controller does it."""
        known = {topic: one.bytes_per_s for topic, one in self.by_topic.items()}
        return capacities_from(self.first_bytes_per_s, known, written)

    def source_of(self, topic: str) -> Source:
        if self.is_set:
            return Source.SET
        known = self.by_topic.get(topic)
        return Source.ASSUMED if known is None else Source(known.source)

    def source(self, written: Mapping[str, float]) -> Source:
        """Of several topics, the least certain; one to which nothing is written does not count."""
        if self.is_set:
            return Source.SET
        found = {self.source_of(topic) for topic, speed in written.items() if speed}
        return next((one for one in _LEAST_CERTAIN_FIRST if one in found), Source.ASSUMED)

    def rows(self, written: Mapping[str, float]) -> dict[str, Any]:
        """As a status has them."""
        usual = self.weighed(written)
        return {
            "bytes_per_s": usual.usual_bytes_per_s,
            "source": self.source(written).value,
            "topics": {topic: self._row(topic, usual) for topic in sorted(written)},
        }

    def _row(self, topic: str, usual: Capacities) -> dict[str, Any]:
        known = self.by_topic.get(topic)
        return {
            "bytes_per_s": usual.of(topic),
            "source": self.source_of(topic).value,
            "measured_bytes_per_s": None if known is None else known.bytes_per_s,
            "lowest_bytes_per_s": None if known is None else known.lowest_bytes_per_s,
            "highest_bytes_per_s": None if known is None else known.highest_bytes_per_s,
        }


def known_capacities(
    chosen: ControllerSettings,
    status: Mapping[str, Any] | None = None,
    calibrated: Mapping[str, float] | None = None,
) -> KnownCapacities:
    """What a person has set wins; then what the group of this status has measured."""
    first = chosen.policy.capacity_bytes_per_s
    if not chosen.capacity_is_measured:
        return KnownCapacities(first, is_set=True)
    by_topic = first_capacities(_measured(status or {}), calibrated or {})
    return KnownCapacities(first, is_set=False, by_topic=by_topic)


def _measured(status: Mapping[str, Any]) -> dict[str, KnownCapacity]:
    """A controller of an older release does not say it."""
    topics = (status.get("capacity") or {}).get("topics", {})
    return {
        topic: KnownCapacity(
            row["measured_bytes_per_s"],
            row["lowest_bytes_per_s"],
            row["highest_bytes_per_s"],
            _source_of(row["source"]).value,
        )
        for topic, row in topics.items()
        if (row.get("measured_bytes_per_s") or 0) >= CAPACITY_BYTES_PER_S_MIN
    }


def _source_of(word: str) -> Source:
    """One that only another release knows counts as the least certain."""
    found = Source(word) if word in set(Source) else Source.ASSUMED
    # Where the running group has a figure that is set, it says beside it what it measured.
    return Source.MEASURED if found is Source.SET else found
