"""What a status says, in words for people who look at it while it changes. Pure.

The live view of `penstock status --watch` and the demo show it. All of it is made of the status
alone, as the controller writes it, so it works from any machine.
"""

import re
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.controller.core.backlog_trend import BATCHES_JUDGED, BacklogDirection
from penstock.controller.core.decisions import Code
from penstock.controller.core.state import ConsumerStatus, Phase
from penstock.model import Assignment, TopicPartition
from penstock.model.sentences import counted, duration_text, speed_text
from penstock.packing import PackingProblem
from penstock.packing.lower_bound import consumers_at_least

_PHASES = {
    Phase.SYNCHRONIZE: "asks the consumers what they have",
    Phase.SENTINEL: "watches",
    Phase.REASSIGN: "makes a plan",
    Phase.GROUP_MANAGEMENT: "carries out a plan",
    Phase.SUPERSEDED: "was replaced by a newer one",
}
_STARTING = {ConsumerStatus.QUERIED, ConsumerStatus.WANTED, ConsumerStatus.CREATING}
_PLAN = re.compile(r"plan (\d+) \(\w+\): ")
_NOTHING = re.compile(r"[,;] 0 (moves of 0 B/s|starts|to create|to empty)(?=[,;]|$)")
# No count has more digits; a text that anybody may have written can have thousands.
_COUNTS = re.compile(r", (\d{1,12}) (starts?|to create|to empty)(?=,|$)")
_LAST_LINE = re.compile(r" Last line: .*", re.DOTALL)
# From here on what is left is said in minutes.
_IN_MINUTES_FROM_S = 180
# How a sentence begins about a group that is later than its objective.
NOT_FRESH = "not fresh"
# Freshness is not measured better than this: less is no reason to call a group late.
_MEASURED_WITHIN_S = 2.0
# How much of the past the speed of carrying is taken from, and the least of it. It spans at least
# two batches.
CARRIED_OVER_MS = 10_000
_CARRIED_OVER_MS_MIN = 4_000


def doing_text(status: Mapping[str, Any]) -> str:
    """What the controller does now: `watches`, `makes a plan: consumer 1 is over capacity`."""
    text = next((text for phase, text in _PHASES.items() if phase == status["phase"]), "works")
    reason = status.get("reason")
    return text if reason is None else f"{text}: {reason['explanation']}"


def decision_text(decision: Mapping[str, Any]) -> str:
    """A decision as one sentence: without numbers of plans, counts of nothing, lines of logs."""
    text = _LAST_LINE.sub("", plain_text(decision["code"], decision["explanation"]))
    times = decision["times"]
    return text if times == 1 else f"{text} ({times} times)"


def plain_text(code: str, explanation: str) -> str:
    """The explanation of a decision without codes and counts of nothing."""
    if code != Code.PLAN_MADE:
        return explanation
    return _COUNTS.sub(_count_text, _NOTHING.sub("", _PLAN.sub(r"plan \1: ", explanation)))


def _count_text(found: re.Match[str]) -> str:
    number, what = int(found[1]), found[2]
    if what.startswith("start"):
        return f", {counted(number, 'partition')} to start"
    return f", {counted(number, 'consumer')} {what}"


def backlog_text(status: Mapping[str, Any]) -> str:
    """`9,000 records, as much as is written in 2 min`: no time that anybody has to wait."""
    number, seconds = status["behind_records"], status["behind_s"]
    if number is None:
        return "an unknown number of records"
    text = f"{_at_most(status)}{number:,} {'record' if number == 1 else 'records'}"
    return f"{text}, as much as is written in {duration_text(seconds)}" if seconds else text


def _at_most(status: Mapping[str, Any]) -> str:
    """Where no ledger offset is known, the whole log is counted."""
    return "at most " if status.get("behind_is_at_most") else ""


def progress_text(status: Mapping[str, Any], carried_bytes_per_s: float | None = None) -> str:
    """How a group without conditions is: well, or what becomes of its backlog.

    Whoever shows another speed of carrying beside it gives that one.
    """
    backlog, carried = status.get("backlog"), carried_bytes_per_s
    if carried is None:
        carried = status.get("carried_bytes_per_s")
    trend = "small" if backlog is None else backlog["trend"]
    late = _late_text(status)
    if trend == BacklogDirection.SMALL:
        return late or "all is well"
    records = f"{_at_most(status)}{status['behind_records']:,} records wait"
    if trend == BacklogDirection.SHRINKING:
        left_s = backlog["left_s"] if backlog else None
        left = "" if left_s is None else f", about {duration_text(_rounded(left_s))} left"
        return f"catching up: {speed_text(carried or 0)} carried{left}"
    if trend == BacklogDirection.STEADY:
        if not carried:
            return f"nothing is carried: {records}"
        stays = "they get neither more nor fewer"
        return f"{late}; {stays}" if late else f"keeping up: {records}, and {stays}"
    fewer = "whether they get fewer is not known yet"
    return f"{late}; {fewer}" if late else f"too early to tell: {records}, and {fewer}"


def _late_text(status: Mapping[str, Any]) -> str:
    """`not fresh: ...` when what waits is later than the objective; empty when it is not.

    Without a freshness, as after a start, the backlog in seconds of writing stands for it, or what
    is certain of the freshness. An older controller does not tell its objective.
    """
    objective_s, records = status.get("objective_freshness_s"), status.get("behind_records")
    if objective_s is None or not records:
        return ""
    waited_s, how_long = status.get("freshness_s"), "the oldest for about {}"
    if waited_s is None:
        written_s = 0.0 if status.get("behind_is_at_most") else status.get("behind_s") or 0.0
        waited_s, how_long = max(
            (written_s, "as much as is written in {}"),
            (status.get("freshness_at_least_s") or 0.0, "the oldest for at least {}"),
        )
    if waited_s <= objective_s + _MEASURED_WITHIN_S:
        return ""
    wait = "record waits" if records == 1 else "records wait"
    return (
        f"{NOT_FRESH}: {_at_most(status)}{records:,} {wait}, "
        f"{how_long.format(duration_text(waited_s))}; the objective is {duration_text(objective_s)}"
    )


def _rounded(seconds: float) -> float:
    """An estimate in whole minutes, when it is more than a few."""
    return seconds if seconds < _IN_MINUTES_FROM_S else round(seconds / 60) * 60


@dataclass(frozen=True, slots=True)
class ConsumerCounts:
    """The consumers by what they are; `needed` is the fewest that could carry the load."""

    needed: int | None
    ready: int
    starting: int
    ending: int

    def __str__(self) -> str:
        needed = "?" if self.needed is None else self.needed
        return (
            f"{needed} needed, {self.ready} ready, {self.starting} starting, {self.ending} ending"
        )


def consumer_counts(status: Mapping[str, Any]) -> ConsumerCounts:
    found = Counter(str(one["status"]) for one in status["consumers"])
    starting = sum(found[one] for one in _STARTING)
    return ConsumerCounts(
        consumers_needed(status), found[ConsumerStatus.READY], starting,
        found[ConsumerStatus.LEAVING],
    )  # fmt: skip


def consumers_needed(status: Mapping[str, Any]) -> int | None:
    """None while no speed is known, or no capacity."""
    asked = status["question"]
    load = {TopicPartition.parse(name): float(x) for name, x in asked["load_bytes_per_s"].items()}
    if not load or not asked["capacity_bytes_per_s"]:
        return None
    return consumers_at_least(PackingProblem(load, Assignment(), asked["capacity_bytes_per_s"]))


def unread_partitions(status: Mapping[str, Any]) -> list[str]:
    """Those that no consumer reads now: nobody has them, or they are being started."""
    return [
        name
        for name, one in status["partitions"].items()
        if one["status"] in ("unread", "starting")
    ]


@dataclass(slots=True)
class NewDecisions:
    """The decisions that a status has and the last one did not have. Mutable, of one viewer."""

    _known: Counter[tuple[str, str, int]] | None = None

    def of(self, status: Mapping[str, Any]) -> list[dict[str, Any]]:
        """None of the first status is new: it has the whole past."""
        history = status["history"]
        now = Counter((one["code"], one["explanation"], one["times"]) for one in history)
        left = now - now if self._known is None else now - self._known
        self._known = now
        found = []
        for one in reversed(history):
            key = (one["code"], one["explanation"], one["times"])
            if left[key]:
                left[key] -= 1
                found.append(one)
        return found[::-1]


def carried_over_ms(status: Mapping[str, Any]) -> int:
    """How much of the past says how fast this group carries: between commits it carries nothing."""
    batch_s: float = status.get("batch_s", 0.0)
    return max(CARRIED_OVER_MS, round(BATCHES_JUDGED * 1_000 * batch_s))


@dataclass(slots=True)
class CarriedSpeed:
    """How fast the group carries: what is written, less what the backlog grows by.

    Mutable, of one viewer: it needs several statuses of one controller.
    """

    _seen: deque[tuple[int, float, float]] = field(default_factory=deque)
    _epoch: int = -1

    def of(self, status: Mapping[str, Any]) -> float | None:
        """None while it is not known."""
        at_ms, behind = status["at_unix_ms"], status["behind_bytes"]
        if status["controller_epoch"] != self._epoch or behind is None:
            self._seen.clear()
            self._epoch = status["controller_epoch"]
        if behind is None or status["behind_is_at_most"]:
            return None
        if not self._seen:
            self._seen.append((at_ms, 0.0, behind))
        last_ms, written, _ = self._seen[-1]
        if at_ms > last_ms:
            written += status["written_bytes_per_s"] * (at_ms - last_ms) / 1000
            self._seen.append((at_ms, written, behind))
        while self._seen[0][0] < at_ms - carried_over_ms(status):
            self._seen.popleft()
        first_ms, first_written, first_behind = self._seen[0]
        over_ms = self._seen[-1][0] - first_ms
        if over_ms < _CARRIED_OVER_MS_MIN:
            return None
        carried = self._seen[-1][1] - first_written - (self._seen[-1][2] - first_behind)
        return max(0.0, carried) / over_ms * 1000
