"""Tells a run of the demo in words, as it happens: what is written, who carries it, why. Pure.

Every line begins with the second. Lines of the demo itself (`demo:`) say what it does to the group,
lines of the controller (`controller:`) what it decides and why, in its own words. All else is what
anybody can see in the status.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.controller.core.state import Phase
from penstock.controller.core.told_status import (
    NewDecisions,
    consumer_counts,
    decision_text,
    unread_partitions,
)
from penstock.laboratory.demo.story import CAPACITY_BYTES_PER_S, Story
from penstock.model.sentences import counted, speed_text

# Plans and what they led to tell the story; these would be told twice.
_NOT_TOLD = {
    "plan_done",
    "plan_overtaken",
    "partition_appeared",
    "first_start",
    "consumer_incident",
}
# The controller has noticed that a consumer is gone.
_LOST = {"consumer_ended", "consumer_fenced", "consumer_restarted"}
# A load that changes by less is called a shift.
_SHIFT = 0.15


@dataclass(frozen=True, slots=True)
class Recovery:
    """A disruption, and how long after it every partition was read again."""

    what: str
    seconds: float


def introduction(story: Story) -> list[str]:
    """What a newcomer must know before the first line."""
    partitions = story.partitions_per_topic * len(story.topics)
    topics = f"{counted(len(story.topics), 'topic')} ({', '.join(story.topics)})"
    text = f"""
A program writes to {partitions} partitions of {topics}.
One consumer carries {speed_text(CAPACITY_BYTES_PER_S)} at most. The controller keeps as many as the
load needs, and one spare. For {story.duration_s:.0f} s the load rises, shifts and falls, while
parts of the group are killed. Every record must reach the lake exactly once.
"""
    return [*text.splitlines(), ""]


def load_text(before: Mapping[str, float] | None, now: Mapping[str, float], partitions: int) -> str:
    """What changes in the load when a phase of the story begins."""
    total = sum(now.values()) * partitions
    most = max(now, key=lambda topic: now[topic])
    where = f"most of it to {most}" if len(set(now.values())) > 1 else "the same to each topic"
    if before is None:
        return f"the load begins with {speed_text(total)}, {where}"
    share = total / (sum(before.values()) * partitions)
    if share > 1 + _SHIFT:
        return f"the load rises to {speed_text(total)}, {where}"
    if share < 1 - _SHIFT:
        return f"the load falls to {speed_text(total)}, {where}"
    return f"the load shifts: {speed_text(total)}, {where}"


def carried_text(status: Mapping[str, Any]) -> str:
    """What is written and who carries it, on one line."""
    loads = []
    for one in status["consumers"]:
        share = one["load_bytes_per_s"] / one["capacity_bytes_per_s"]
        state = f"{share * 100:.0f} % full" if one["partitions"] else "spare"
        if one["status"] != "ready":
            state = "starts" if one["status"] != "leaving" else "ends"
        loads.append(f"{one['consumer']} ({state})")
    counts = consumer_counts(status)
    needed = "" if counts.needed is None else f" (at least {counts.needed} needed)"
    who = f"consumers{needed}: {', '.join(loads)}" if loads else "no consumer yet"
    text = f"{speed_text(status['written_bytes_per_s'])} written; {who}"
    unread = [name for name, one in status["partitions"].items() if one["consumer"] is None]
    return text + (f"; nobody reads {counted(len(unread), 'partition')}" if unread else "")


@dataclass(slots=True)
class _Disrupted:
    at_s: float
    what: str
    partitions: int
    # Whether a status shows that the controller knows it.
    is_noticed: bool = False


@dataclass(slots=True)
class Narrator:
    """Mutable, of one run."""

    story: Story
    recoveries: list[Recovery] = field(default_factory=list)
    _decisions: NewDecisions = field(default_factory=NewDecisions)
    _phases_told: int = 0
    _epoch: int | None = None
    _partitions: int = 0
    _disrupted: list[_Disrupted] = field(default_factory=list)

    def loaded(self, at_s: float) -> list[str]:
        """A phase of the load that has begun."""
        lines = []
        while self._phases_told < len(self.story.phases):
            starts_s, now = self.story.phases[self._phases_told]
            if at_s < starts_s:
                break
            before = self.story.phases[self._phases_told - 1][1] if self._phases_told else None
            text = load_text(before, now, self.story.partitions_per_topic)
            lines.append(line(at_s, f"demo: {text}"))
            self._phases_told += 1
        return lines

    def disrupted(self, at_s: float, what: str, detail: str) -> str:
        """What the demo has done to the group."""
        self._disrupted.append(_Disrupted(at_s, what, self._partitions))
        return line(at_s, f"demo: {what}; {detail}")

    def seen(self, at_s: float, status: Mapping[str, Any]) -> list[str]:
        """What a new status has to tell."""
        lines = []
        is_new = self._epoch is not None and status["controller_epoch"] != self._epoch
        if is_new:
            lines.append(line(at_s, "a new controller leads; the consumers went on meanwhile"))
        self._epoch = status["controller_epoch"]
        self._partitions = len(status["partitions"])
        decisions = self._decisions.of(status)
        lines += [
            line(at_s, f"controller: {decision_text(one)}")
            for one in decisions
            if one["code"] not in _NOT_TOLD
        ]
        for one in self._disrupted:
            if is_new or self._partitions > one.partitions:
                one.is_noticed = True
            if any(decision["code"] in _LOST for decision in decisions):
                one.is_noticed = True
        return lines + self._recovered(at_s, status)

    def _recovered(self, at_s: float, status: Mapping[str, Any]) -> list[str]:
        if status["phase"] == Phase.SYNCHRONIZE or unread_partitions(status):
            return []
        over = [one for one in self._disrupted if one.is_noticed]
        self._disrupted = [one for one in self._disrupted if not one.is_noticed]
        self.recoveries += [Recovery(one.what, at_s - one.at_s) for one in over]
        return [
            line(at_s, f"every partition is read again, {at_s - one.at_s:.0f} s after: {one.what}")
            for one in over
        ]


def line(at_s: float, text: str) -> str:
    return f"{at_s:4.0f} s  {text}"
