"""One snapshot of the group, indexed: the rows of consumers and partitions that answers show.

Rows are made when they are asked for. Most answers need a few of ten thousand.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from penstock.controller.core.snapshot import seconds_behind

Json = dict[str, Any]

# A partition that takes more than this share of a consumer's capacity is marked as hot.
HOT_SHARE = 0.5
# A partition counts as behind when what waits was written longer ago than this.
BEHIND_S = 30.0
_NO_MARKS: list[str] = []
# From the controller's words for a consumer to the three that matter to people.
_STATES = {
    "queried": "starting",
    "wanted": "starting",
    "creating": "starting",
    "ready": "ready",
    "leaving": "ending",
}


def split_name(name: str) -> tuple[str, int]:
    """`orders-3` is partition 3 of `orders`."""
    topic, _, number = name.rpartition("-")
    return topic, int(number)


@dataclass(frozen=True)
class View:
    """A snapshot as `read_status` gives it, and what was carried lately as far as it is known."""

    snapshot: Json
    # Bytes per second, by consumer; `None` is the key of the whole group.
    carried: Mapping[int | None, float]

    @property
    def at_unix_ms(self) -> int:
        return int(self.snapshot["at_unix_ms"])

    @property
    def capacity_bytes_per_s(self) -> float:
        return float(self.snapshot["capacity_bytes_per_s"])

    @cached_property
    def capacity_by_topic(self) -> Mapping[str, float]:
        """What one consumer carries of each topic; an older controller does not say it."""
        rows = self.snapshot.get("capacity", {}).get("topics", {})
        return {topic: float(row["bytes_per_s"]) for topic, row in rows.items()}

    @property
    def target_utilisation(self) -> float:
        return float(self.snapshot["target_utilisation"])

    @property
    def partitions(self) -> Mapping[str, Json]:
        partitions: Mapping[str, Json] = self.snapshot["partitions"]
        return partitions

    @cached_property
    def moves(self) -> Mapping[str, Json]:
        return {one["partition"]: one for one in self.snapshot["moves"]}

    @cached_property
    def _consumers(self) -> Mapping[int, Json]:
        return {one["consumer"]: one for one in self.snapshot["consumers"]}

    def consumer_ids(self) -> list[int]:
        return list(self._consumers)

    @cached_property
    def _judged(self) -> Mapping[str, tuple[str, list[str]]]:
        """The state and the marks of every partition, in one pass: there may be ten thousand."""
        parked, moves, found = self.snapshot["parked"], self.moves, {}
        usual, by_topic = self.capacity_bytes_per_s, self.capacity_by_topic
        for name, one in self.partitions.items():
            speed, marks = one["write_speed_bytes_per_s"] or 0.0, _NO_MARKS
            capacity = by_topic.get(name.rpartition("-")[0], usual) if by_topic else usual
            if speed > HOT_SHARE * capacity:
                marks = ["oversize" if speed > capacity else "hot"]
            if (seconds := self._behind_s(one)) is not None and seconds > BEHIND_S:
                marks = [*marks, "behind"]
            state = "stopped" if name in parked else "moving" if name in moves else one["status"]
            found[name] = (state, marks)
        return found

    def state_of(self, name: str) -> str:
        """`stopped`, `moving`, or how far its start or stop is; `unread` when nobody has it."""
        return self._judged[name][0]

    def marks_of(self, name: str) -> list[str]:
        return self._judged[name][1]

    @classmethod
    def _behind_s(cls, one: Json) -> float | None:
        behind, speed = cls._behind_bytes(one), one["write_speed_bytes_per_s"]
        return None if behind is None or speed is None else seconds_behind(behind, speed)

    @staticmethod
    def _behind_bytes(one: Json) -> float | None:
        """A snapshot leaves the bytes out where no record waits."""
        behind: float | None = one.get("behind_bytes")
        return 0 if behind is None and one.get("behind_records") == 0 else behind

    def partition(self, name: str) -> Json:
        """All that is known of one partition now."""
        one, move = self.partitions[name], self.moves.get(name)
        topic, number = split_name(name)
        loads: Mapping[str, float] = self.snapshot["question"]["load_bytes_per_s"]
        return {
            "topic": topic,
            "partition": number,
            "state": self.state_of(name),
            "marks": self.marks_of(name),
            "consumer": one["consumer"],
            "to": None if move is None else move["to"],
            "write_speed_bytes_per_s": one["write_speed_bytes_per_s"],
            "load_bytes_per_s": loads.get(name),
            "behind_records": one.get("behind_records"),
            "behind_bytes": self._behind_bytes(one),
            "behind_s": self._behind_s(one),
            "behind_is_at_most": bool(one.get("behind_is_at_most")),
            "start_offset": one.get("start_offset"),
            "next_offset": one.get("next_offset"),
            "end_offset": one.get("end_offset"),
            "stopped_reason": self.snapshot["parked"].get(name),
            "stopped_detail": self.snapshot["parked_details"].get(name),
        }

    def consumer(self, number: int, *, with_partitions: bool) -> Json | None:
        """All that is known of one consumer now; None when there is no such consumer."""
        one = self._consumers.get(number)
        if one is None:
            return None
        capacity, load = one["capacity_bytes_per_s"], one["load_bytes_per_s"]
        heard_ms = one["heard_ms_ago"]
        row = {
            "consumer": number,
            "state": _STATES.get(one["status"], "starting"),
            "status": one["status"],
            "occupation": one.get("occupation") or "",
            "heard_s_ago": None if heard_ms is None else heard_ms / 1000,
            "incarnation": one["incarnation"],
            "deployment_version": one["deployment_version"],
            "load_bytes_per_s": load,
            "carried_bytes_per_s": self.carried.get(number),
            "capacity_bytes_per_s": capacity,
            "target_bytes_per_s": capacity * self.target_utilisation,
            "measured_capacity_bytes_per_s": one["measured_capacity_bytes_per_s"],
            "share": load / capacity if capacity else None,
            "behind_records": one["behind_records"],
            "behind_bytes": one["behind_bytes"],
            "behind_s": one["behind_s"],
            "partitions": len(one["partitions"]),
            "by_topic": self._by_topic(one["partitions"]),
        }
        if with_partitions:
            row["segments"] = [self._segment(name) for name in one["partitions"]]
        return row

    def _by_topic(self, names: list[str]) -> list[Json]:
        speeds: dict[str, list[float]] = {}
        for name in names:
            topic = name.rpartition("-")[0]
            speeds.setdefault(topic, []).append(self._speed(name))
        return [
            {"topic": topic, "partitions": len(found), "load_bytes_per_s": sum(found)}
            for topic, found in sorted(speeds.items())
        ]

    def _speed(self, name: str) -> float:
        one = self.partitions.get(name)
        return 0.0 if one is None else one["write_speed_bytes_per_s"] or 0.0

    def _segment(self, name: str) -> Json:
        """A partition as a part of its consumer's bar."""
        topic, number = split_name(name)
        move = self.moves.get(name)
        return {
            "topic": topic,
            "partition": number,
            "load_bytes_per_s": self._speed(name),
            "state": self.state_of(name) if name in self.partitions else "owned",
            "to": None if move is None else move["to"],
            "marks": self.marks_of(name) if name in self.partitions else [],
        }

    def without_consumer(self) -> Iterator[Json]:
        """The segments that are in no consumer's bar."""
        for name, one in self.partitions.items():
            if one["consumer"] is None:
                yield self._segment(name)

    def topics(self) -> list[Json]:
        """The partitions of each topic, added up."""
        rows: dict[str, Json] = {}
        for name, one in self.partitions.items():
            topic = name.rpartition("-")[0]
            row = rows.get(topic)
            if row is None:
                row = rows[topic] = {
                    "topic": topic,
                    "partitions": 0,
                    "stopped": 0,
                    "unread": 0,
                    "written_bytes_per_s": 0.0,
                    "behind_records": 0,
                }
            row["partitions"] += 1
            row["stopped"] += name in self.snapshot["parked"]
            row["unread"] += one["consumer"] is None
            row["written_bytes_per_s"] += one["write_speed_bytes_per_s"] or 0.0
            row["behind_records"] += one.get("behind_records") or 0
        return [rows[topic] for topic in sorted(rows)]

    def longest_behind(self) -> tuple[str, float] | None:
        """The partition whose oldest record that is not in the lake has waited longest."""
        found = (
            (name, seconds)
            for name, one in self.partitions.items()
            if (seconds := self._behind_s(one)) is not None
        )
        return max(found, key=lambda one: one[1], default=None)
