"""A group that does not exist: its snapshots, second by second, as a controller would write them.

The answers of the API that are kept in `recorded`, the tests of the page and its benchmark use it.
The same arguments give the same snapshots.
"""

from dataclasses import dataclass, field
from math import pi, sin
from random import Random
from typing import Any

from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing import PackingProblem, algorithm_named

CAPACITY_BYTES_PER_S = 1_000_000.0
TARGET_UTILISATION = 0.9
BEGIN_UNIX_MS = 1_795_000_000_000
BYTES_PER_RECORD = 400
TOPICS = ("orders", "payments", "clicks", "stock.changes")
STEP_S = 1

# What happens, in seconds since the begin.
LOST_AT_S = 120
REPLACED_AT_S = 126
STOPPED_AT_S = 200
GROWN_AT_S = 260
MOVE_AT_S = 292
MOVE_TAKES_S = 14


def topic_names(count: int) -> tuple[str, ...]:
    return (*TOPICS, *(f"topic{number}" for number in range(count)))[:count]


@dataclass(slots=True)
class MadeUpGroup:
    """Advanced by `step`, one second at a time."""

    consumers: int = 12
    partitions: int = 60
    topics: int = 4
    seed: int = 1
    names: tuple[TopicPartition, ...] = ()
    base: dict[TopicPartition, float] = field(default_factory=dict)
    assignment: Assignment = field(default_factory=Assignment)
    at_s: int = -1
    plan_number: int = 1
    history: list[dict[str, Any]] = field(default_factory=list)
    carried: dict[int, float] = field(default_factory=dict)
    next_offset: dict[TopicPartition, float] = field(default_factory=dict)
    end_offset: dict[TopicPartition, float] = field(default_factory=dict)
    lost: ConsumerId | None = None
    unread: frozenset[TopicPartition] = frozenset()
    moves: dict[TopicPartition, tuple[ConsumerId, ConsumerId]] = field(default_factory=dict)
    stopped: TopicPartition | None = None
    # Why the newest plan was made.
    why: dict[str, str] | None = None

    def __post_init__(self) -> None:
        chance = Random(self.seed)
        topics = topic_names(self.topics)
        self.names = tuple(
            TopicPartition(topics[number % len(topics)], number // len(topics))
            for number in range(self.partitions)
        )
        weights = [chance.paretovariate(1.6) for _ in self.names]
        room = (self.consumers - 2.4) * CAPACITY_BYTES_PER_S * TARGET_UTILISATION
        scale = room / sum(weights)
        self.base = {
            name: min(0.8 * CAPACITY_BYTES_PER_S, weight * scale)
            for name, weight in zip(self.names, weights, strict=True)
        }
        self.base[self.names[0]] = 1.25 * CAPACITY_BYTES_PER_S  # faster than a whole consumer
        for number, name in enumerate(self.names):
            begin = 50_000 + 977 * (number % 50)
            self.next_offset[name], self.end_offset[name] = float(begin), float(begin)
        self.assignment = self._packed(self.base, self.assignment)
        self.carried = {int(one): 0.0 for one in self.assignment}
        self._tell("first_start", "the group starts: there is no state, and no consumer")
        self._tell(
            "plan_made",
            f"{len(self.assignment)} consumers for {len(self.names)} partitions",
            moves=len(self.names),
            moved=sum(self.base.values()),
        )
        self._tell("oversize_partition", f"{self.names[0]} is faster than a whole consumer")

    def _packed(self, speeds: dict[TopicPartition, float], current: Assignment) -> Assignment:
        problem = PackingProblem(speeds, current, CAPACITY_BYTES_PER_S * TARGET_UTILISATION)
        return algorithm_named("CHAIN").pack(problem).assignment

    def _tell(self, code: str, why: str, *, moves: int = 0, moved: float = 0.0) -> None:
        self.history.append(
            {
                "at_s": max(0, self.at_s),
                "code": code,
                "explanation": why,
                "plan": self.plan_number,
                "moves": moves,
                "moved_bytes_per_s": moved,
            }
        )

    def speeds(self) -> dict[TopicPartition, float]:
        return {
            name: base * (1 + 0.12 * sin(2 * pi * (self.at_s / 240 + number / 7)))
            for number, (name, base) in enumerate(self.base.items())
        }

    def step(self) -> dict[str, Any]:
        """One second passes; the snapshot after it."""
        self.at_s += STEP_S
        self._happen()
        speeds = self.speeds()
        owner = self.assignment.owners
        load: dict[ConsumerId, float] = dict.fromkeys(self.assignment, 0.0)
        for name, speed in speeds.items():
            self.end_offset[name] += speed / BYTES_PER_RECORD
            if self._reader_of(name) is not None:
                load[owner[name]] += speed
        for name in self.names:
            reader = self._reader_of(name)
            if reader is None:
                continue
            waits = self.end_offset[name] - self.next_offset[name]
            share = min(1.0, CAPACITY_BYTES_PER_S / max(1.0, load[reader]))
            most = speeds[name] * max(share, 1.0 if load[reader] > CAPACITY_BYTES_PER_S else 1.3)
            if load[reader] > CAPACITY_BYTES_PER_S:
                most = speeds[name] * share
            carried = min(waits, most / BYTES_PER_RECORD)
            self.next_offset[name] += carried
            self.carried[int(reader)] = (
                self.carried.get(int(reader), 0.0) + carried * BYTES_PER_RECORD
            )
        return self._snapshot(speeds, load)

    def _reader_of(self, name: TopicPartition) -> ConsumerId | None:
        if name in self.unread or name in self.moves or name == self.stopped:
            return None
        owner = self.assignment.owner_of(name)
        return None if owner == self.lost else owner

    def _happen(self) -> None:
        if self.at_s == LOST_AT_S:
            self.lost = sorted(self.assignment)[min(2, len(self.assignment) - 1)]
            self._tell("consumer_fenced", f"consumer {self.lost} has been silent for 6 s")
        if self.at_s == REPLACED_AT_S and self.lost is not None:
            held = self.assignment[self.lost]
            self.plan_number += 1
            current = Assignment({c: p for c, p in self.assignment.items() if c != self.lost})
            self.assignment = self._packed(self.speeds(), current)
            self._tell("consumer_lost", f"{len(held)} partitions have lost consumer {self.lost}")
            moved = sum(self.speeds()[one] for one in sorted(held))
            self._tell(
                "plan_made", f"{len(held)} partitions get a reader", moves=len(held), moved=moved
            )
            for new in sorted(set(self.assignment) - set(current)):
                self._tell("consumer_created", f"consumer {new} is started")
            self.lost = None
        if self.at_s == STOPPED_AT_S:
            self.stopped = self.names[-1]
            self._tell(
                "partition_failed",
                f"{self.stopped}: record 61,204 cannot be decoded: <b>not</b> Avro",
            )
        if self.at_s == GROWN_AT_S:
            for name in self.names[1 : len(self.names) // 3]:
                self.base[name] = min(0.8 * CAPACITY_BYTES_PER_S, self.base[name] * 1.2)
        if self.at_s == MOVE_AT_S:
            self._plan_moves()
        if self.at_s == MOVE_AT_S + MOVE_TAKES_S and self.moves:
            self.moves = {}
            self._tell("plan_done", f"plan {self.plan_number} is done")

    def _plan_moves(self) -> None:
        self.plan_number += 1
        before = self.assignment
        self.assignment = self._packed(self.speeds(), before)
        owners = before.owners
        self.moves = {
            one: (owners[one], to)
            for one, to in self.assignment.owners.items()
            if owners[one] != to
        }
        speeds = self.speeds()
        load = {c: sum(speeds[one] for one in sorted(held)) for c, held in before.items()}
        fullest = max((c for c in load if self.names[0] not in before[c]), key=lambda c: load[c])
        explanation = f"consumer {fullest} is over capacity: {load[fullest] / 1e3:.0f} of 900 kB/s"
        self.why = {"code": "over_capacity", "explanation": explanation}
        self._tell("over_capacity", explanation)
        self._tell(
            "plan_made",
            f"{len(self.moves)} partitions move",
            moves=len(self.moves),
            moved=sum(speeds[one] for one in sorted(self.moves)),
        )
        for new in sorted(set(self.assignment) - set(before)):
            self._tell("consumer_created", f"consumer {new} is started")

    def _snapshot(
        self, speeds: dict[TopicPartition, float], load: dict[ConsumerId, float]
    ) -> dict[str, Any]:
        partitions = {str(name): self._partition(name, speeds[name]) for name in self.names}
        behind = sum(one["behind_records"] for one in partitions.values())
        written = sum(speeds.values())
        return {
            "version": 1,
            "at_unix_ms": BEGIN_UNIX_MS + self.at_s * 1000,
            "now_ms": 10_000_000 + self.at_s * 1000,
            "phase": "Group Management" if self.moves or self.lost is not None else "Sentinel",
            "phase_for_ms": 4_000,
            "reason": self.why if self.moves else None,
            "controller_epoch": 3,
            "plan_number": self.plan_number,
            "is_degraded": False,
            "conditions": self._conditions(),
            "measurement_age_ms": 700,
            "capacity_bytes_per_s": CAPACITY_BYTES_PER_S,
            "capacity": {"bytes_per_s": CAPACITY_BYTES_PER_S, "source": "set", "topics": {}},
            "target_utilisation": TARGET_UTILISATION,
            "settings": {
                "consumers_min": 1,
                "consumers_max": 2 * self.consumers,
                "spare_consumers": 0,
                "algorithm": "CHAIN",
                "partitions_per_consumer_max": 2_000,
            },
            "written_bytes_per_s": written,
            "carried_bytes": round(sum(self.carried.values())),
            "behind_bytes": behind * BYTES_PER_RECORD,
            "behind_records": behind,
            "behind_s": behind * BYTES_PER_RECORD / written,
            "freshness_s": round(1 + behind * BYTES_PER_RECORD / written, 1),
            "topic_ids": {},
            "behind_is_at_most": False,
            "behind_unknown": 0,
            "consumers": [self._consumer(one, load[one], partitions) for one in self.assignment],
            "partitions": partitions,
            "moves": [
                {"partition": str(one), "at": int(at), "to": int(to), "status": "stopping"}
                for one, (at, to) in sorted(self.moves.items())
            ],
            "question": {
                "load_bytes_per_s": {str(name): speed for name, speed in speeds.items()},
                "current": {
                    str(int(one)): [str(name) for name in sorted(held)]
                    for one, held in self.assignment.items()
                },
                "capacity_bytes_per_s": CAPACITY_BYTES_PER_S * TARGET_UTILISATION,
                "capacity_bytes_per_s_by_consumer": {},
                "partitions_per_consumer_max": 2_000,
                "consumers_max": 2 * self.consumers,
                "forecast_bytes_per_s": {},
            },
            "parked": {} if self.stopped is None else {str(self.stopped): "undecodable"},
            "parked_details": {}
            if self.stopped is None
            else {str(self.stopped): "record 61,204 cannot be decoded: <b>not</b> Avro"},
            "pauses": [],
            "held_by_silence": None,
            "roll_out": None,
            "counts": {},
            "history": [self._decision(one) for one in self.history[-200:]],
        }

    def _partition(self, name: TopicPartition, speed: float) -> dict[str, Any]:
        next_offset, end_offset = int(self.next_offset[name]), int(self.end_offset[name])
        is_stopped = name == self.stopped
        owner = self.assignment.owner_of(name)
        if name in self.moves:
            owner = self.moves[name][0]
        status = "stopping" if name in self.moves else "unread" if is_stopped else "owned"
        return {
            "write_speed_bytes_per_s": speed,
            "consumer": None if is_stopped or owner is None else int(owner),
            "status": status,
            "behind_records": end_offset - next_offset,
            "behind_bytes": (end_offset - next_offset) * BYTES_PER_RECORD,
            "behind_is_at_most": False,
            "start_offset": 0,
            "next_offset": next_offset,
            "end_offset": end_offset,
        }

    def _consumer(
        self, one: ConsumerId, load: float, partitions: dict[str, dict[str, Any]]
    ) -> dict[str, Any]:
        held = [name for name, at in partitions.items() if at["consumer"] == int(one)]
        behind = sum(partitions[name]["behind_records"] for name in held)
        is_lost = one == self.lost
        return {
            "consumer": int(one),
            "status": "ready",
            "incarnation": 1,
            "deployment_version": 1,
            "occupation": "" if is_lost else "works on a batch since 0.4 s",
            "heard_ms_ago": 6_000 + 1_000 * (self.at_s - LOST_AT_S) if is_lost else 600,
            "load_bytes_per_s": load,
            "capacity_bytes_per_s": CAPACITY_BYTES_PER_S,
            "measured_capacity_bytes_per_s": None,
            "carried_bytes": round(self.carried.get(int(one), 0.0)),
            "behind_bytes": behind * BYTES_PER_RECORD,
            "behind_records": behind,
            "behind_s": behind * BYTES_PER_RECORD / load if load > 1 else None,
            "partitions": held,
        }

    def _conditions(self) -> list[dict[str, str]]:
        found = []
        if self.stopped is not None:
            found.append(
                {"condition": "stopped", "reason": f"1 partition is stopped: {self.stopped}"}
            )
        found.append(
            {
                "condition": "oversize",
                "reason": f"{self.names[0]} is faster than a whole consumer: 1.25 of 1 MB/s",
            }
        )
        return found

    def _decision(self, one: dict[str, Any]) -> dict[str, Any]:
        age_ms = (self.at_s - one["at_s"]) * 1000
        kept = {name: value for name, value in one.items() if name != "at_s"}
        return {**kept, "age_ms": age_ms, "times": 1, "first_age_ms": age_ms}
