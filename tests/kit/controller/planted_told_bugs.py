"""Planted bugs in what the controller tells and remembers: status, history, figures, the clock."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from kit.planted_bug import PlantedBug
from penstock.controller.core import (
    backlog_trend,
    capacity_text,
    changed_topics,
    conditions,
    decisions,
    dry_run,
    figures,
    freshness,
    housekeeping,
    incarnations,
    new_settings,
    objective_changes,
    objective_cost,
    reassignment,
    state_machine,
    told_status,
    waiting,
)
from penstock.controller.core.excluded_times import note_excluded
from penstock.controller.core.growth import most_consumers
from penstock.controller.core.incarnations import AHEAD_OF_THE_CLOCK_MAX_MS
from penstock.controller.core.state import State
from penstock.model import TopicPartition


def _replaced(module: Any, name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(module, name, value)


def _clock_of_utc(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        housekeeping,
        "note_excluded",
        lambda draft, tick: note_excluded(draft, dataclasses.replace(tick, utc_offset_s=0)),
    )


def _excluded_times_ignored(patch: pytest.MonkeyPatch) -> None:
    def is_paused(self: State, direction: Any) -> bool:
        return any(pause.direction in {"both", direction} for pause in self.pauses)

    patch.setattr(State, "is_paused", is_paused)


def _clock_alone_decides(patch: pytest.MonkeyPatch) -> None:
    def is_impossible(_: State, given: Any) -> bool:
        latest_ms = (given.unix_ms or 0) + AHEAD_OF_THE_CLOCK_MAX_MS
        return given.unix_ms is not None and given.message.incarnation > latest_ms

    patch.setattr(incarnations, "is_impossible", is_impossible)


def _removed_records_wait(patch: pytest.MonkeyPatch) -> None:
    right = waiting.between
    patch.setattr(
        waiting,
        "between",
        lambda extent, offset: right(dataclasses.replace(extent, start_offset=None), offset),
    )


def _start_roll_out_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        state_machine, "without_untried", lambda state, due: dataclasses.replace(state, due=due)
    )


def _dropped_without_reason(patch: pytest.MonkeyPatch) -> None:
    right = new_settings.kept_changes

    def kept_changes(*given: Any) -> Any:
        found = right(*given)
        options = tuple(explanation.partition(" ")[0] for explanation in found.dropped)
        return dataclasses.replace(found, dropped=options)

    for module in (new_settings, state_machine):
        patch.setattr(module, "kept_changes", kept_changes)


TOLD_BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "first batch not waited for",
        "a group is judged before any batch has ended",
        _replaced(backlog_trend, "_is_in_its_first", lambda _: False),
    ),
    PlantedBug(
        "judged across a gap",
        "what was carried while the controller read nothing is dated by when it read it",
        _replaced(backlog_trend, "GAP_PERIODS", 10**9),
    ),
    PlantedBug(
        "all topics named",
        "a sentence names every topic, however many there are",
        _replaced(capacity_text, "TOPICS_SHOWN", 10**9),
    ),
    PlantedBug(
        "measured with the former one",
        "what was measured with another transformation stays as if it were right",
        _replaced(changed_topics, "changed_by", lambda _: frozenset()),
    ),
    PlantedBug(
        "moving called unread",
        "what a plan moves is a condition at once",
        _replaced(conditions, "MOVE_GRACE_MS", -1),
    ),
    PlantedBug(
        "history without bound", "nothing is pushed out", _replaced(decisions, "_bounded", tuple)
    ),
    PlantedBug(
        "planned by bytes",
        "the plan that is shown forgets what the bytes of a topic cost",
        _replaced(
            dry_run,
            "_by_partition",
            lambda found, _: {TopicPartition.parse(p): x for p, x in found.items()},
        ),
    ),
    PlantedBug(
        "clock of UTC",
        "times of the day are not those of the time zone",
        _clock_of_utc,
    ),
    PlantedBug(
        "excluded times ignored",
        "only pauses hold the group, and no times of the day",
        _excluded_times_ignored,
    ),
    PlantedBug(
        "freshest told",
        "a topic is as fresh as its freshest partition",
        lambda patch: patch.setattr(figures, "max", min, raising=False),
    ),
    PlantedBug(
        "oldest end forgotten",
        "a long backlog looks younger than it is",
        _replaced(freshness, "_shortened", lambda marks: marks[-freshness.MARKS_MAX :]),
    ),
    PlantedBug(
        "clock alone decides",
        "a consumer that counts on from a wrong clock is not heard",
        _clock_alone_decides,
    ),
    PlantedBug(
        "dropped without a reason",
        "nothing tells why a changed setting holds no more",
        _dropped_without_reason,
    ),
    PlantedBug(
        "one slow start counts",
        "the settings follow a single start",
        _replaced(objective_changes, "STARTS_NEEDED", 1),
    ),
    PlantedBug(
        "objectives cost the same",
        "another objective is priced with the same utilisation",
        _replaced(objective_cost, "_filled", lambda problem, _: problem),
    ),
    PlantedBug(
        "grows while paused",
        "the packer may use new consumers in spite of a pause",
        _replaced(reassignment, "_consumers_max", most_consumers),
    ),
    PlantedBug(
        "start rolled out twice",
        "a roll-out of an earlier start stays beside the one of this start",
        _start_roll_out_twice,
    ),
    PlantedBug(
        "starting not counted",
        "consumers that start are not shown",
        _replaced(told_status, "_STARTING", frozenset()),
    ),
    PlantedBug(
        "removed records wait", "what retention removed is a backlog", _removed_records_wait
    ),
)
