"""Planted bugs in what sizes the group: load, backlog, capacity, growth, trigger and numbers."""

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from kit.planted_bug import PlantedBug
from penstock.controller.core import (
    backlog,
    capacity,
    capacity_learning,
    group_management,
    growth,
    holdings,
    housekeeping,
    load,
    membership,
    plan,
    reassignment,
    sentinel,
    silence,
    state_machine,
    synchronisation,
)
from penstock.controller.core.heartbeat_state import HeartbeatState
from penstock.controller.core.step_draft import StepDraft
from penstock.packing import bounded, trigger
from penstock.packing.speed_memory import SpeedMemory, remember


def _changed_group(patch: pytest.MonkeyPatch, change: Callable[[StepDraft, Any], Any]) -> None:
    """Everybody sees another load of the group."""
    right = load.group_load

    def group_load(draft: StepDraft, *where: Any) -> Any:
        return change(draft, right(draft, *where))

    for module in (load, sentinel, reassignment, group_management, plan):
        patch.setattr(module, "group_load", group_load)
    patch.setattr("behaviour.controller.test_one_line_bugs.group_load", group_load)


def _never_behind(patch: pytest.MonkeyPatch) -> None:
    _changed_group(patch, lambda _, group: dataclasses.replace(group, is_behind=False))


def _stale_for_hours(patch: pytest.MonkeyPatch) -> None:
    def fresh(draft: StepDraft, group: Any) -> Any:
        speeds, bound_ms = draft.state.speeds, draft.state.settings.speeds_stale_ms
        age_ms = 0 if speeds is None else draft.now_ms - speeds.measured_ms
        return dataclasses.replace(group, is_fresh=age_ms <= 1_000 * bound_ms)

    _changed_group(patch, fresh)


def _floor_not_raised(patch: pytest.MonkeyPatch) -> None:
    right = membership._depart

    def depart(draft: StepDraft, consumer: Any) -> None:
        incarnation = draft.consumers[consumer].incarnation
        right(draft, consumer)
        if incarnation:
            draft.floor.put(consumer, incarnation)

    patch.setattr(membership, "_depart", depart)


def _answers_of_any_plan(patch: pytest.MonkeyPatch) -> None:
    right = synchronisation.message_read

    def message_read(draft: StepDraft, given: Any) -> None:
        newer = {"plan_number": max(given.message.plan_number, draft.state.plan_number)}
        message = given.message.model_copy(update=newer)
        right(draft, dataclasses.replace(given, message=message))

    table = {
        key: message_read if handler is right else handler
        for key, handler in state_machine.HANDLERS.items()
    }
    patch.setattr(state_machine, "HANDLERS", table)


def _highest_capacity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(capacity, "median_low", max)


def _backlog_never_cleared(patch: pytest.MonkeyPatch) -> None:
    right = backlog.backlog_of
    known: dict[Any, Any] = {}

    def backlog_of(report: Any) -> Any:
        known[report.sender] = right(report) or known.get(report.sender, {})
        return known[report.sender]

    patch.setattr(holdings, "backlog_of", backlog_of)


def _backlog_without_bound(patch: pytest.MonkeyPatch) -> None:
    right = backlog.catch_up_load

    def catch_up_load(draft: StepDraft, behind: Any, set_aside: Any) -> Any:
        settings = dataclasses.replace(draft.state.settings, catch_up_share=1e9)
        return right(StepDraft(dataclasses.replace(draft.state, settings=settings), 0), behind, ())

    patch.setattr(load, "catch_up_load", catch_up_load)


def _backlog_of_former_holders(patch: pytest.MonkeyPatch) -> None:
    def everywhere(draft: StepDraft) -> Any:
        records = draft.consumers.now.values()
        return {p: b for record in records for p, b in record.behind_by_partition.items()}

    patch.setattr(load, "behind_by_partition", everywhere)


def _nothing_set_aside(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(load, "_set_aside", lambda *_: frozenset())


def _newest_speed_established(patch: pytest.MonkeyPatch) -> None:
    def at_once(memory: Any, speeds: Any, now_ms: int, _: int, highest_ms: int) -> Any:
        return remember(memory, speeds, now_ms, 0, highest_ms)

    patch.setattr(housekeeping, "remember", at_once)
    patch.setattr("behaviour.packing.test_speed_memory.remember", at_once)


def _highest_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SpeedMemory, "highest", property(lambda memory: dict(memory.established)))


def _any_move_is_worthwhile(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reassignment, "is_worthwhile", lambda *_: True)


def _plans_outlive_their_reason(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(group_management, "drop_without_reason", lambda _: False)


def _wanted_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(plan, "_forget_what_nobody_wants", lambda _: None)


def _growth_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(growth, "_compare", lambda *_: None)


def _repair_counts_as_growth(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(growth, "most_working", lambda _: 0)


def _stays_too_small(patch: pytest.MonkeyPatch) -> None:
    right = growth.most_consumers
    for module in (growth, reassignment):
        patch.setattr(module, "most_consumers", lambda draft: max(1, right(draft) // 3))


def _late_heartbeat_dated_by_the_newest(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(HeartbeatState, "sent_ms", lambda self, _: max(self.last_sent_ms, default=None))


def _contention_learned(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        capacity_learning, "learned_capacity", lambda _, known, reported: reported or known
    )


def _grown_size_not_confirmed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(growth, "_confirm_grown_size", lambda _: None)


def _any_size_confirmed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(holdings, "is_slowed", lambda *_: False)


def _costs_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = capacity.capacities_of
    patch.setattr(
        load, "capacities_of", lambda state: dataclasses.replace(right(state), weights={})
    )


def _bounds_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(capacity_learning, "_raised", lambda _, at_least: at_least)


def _every_figure_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(capacity_learning, "SAME_SHARE", 0.0)


def _measured_not_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(state_machine, "first_capacities", lambda *_: {})


def _failed_number_again(patch: pytest.MonkeyPatch) -> None:
    for module in (membership, silence):
        patch.setattr(module, "avoid_number", lambda *_: None)


def _oversize_stretches_all(patch: pytest.MonkeyPatch) -> None:
    right = bounded._Stretching.of

    def of(integers: Any, consumers_max: int, tight: Any) -> Any:
        total = Fraction(sum(integers.sizes), consumers_max * integers.capacity_max)
        found = right(integers, consumers_max, tight)
        return dataclasses.replace(found, least=max(Fraction(1), total))

    patch.setattr(bounded._Stretching, "of", of)


def _overload_since_ever(patch: pytest.MonkeyPatch) -> None:
    right = trigger._note_overload

    def note(memory: Any, group: Any, now_ms: int) -> Any:
        noted = right(memory, group, now_ms)
        return dataclasses.replace(
            noted, over_since_ms=dict.fromkeys(noted.over_since_ms, -(10**9))
        )

    patch.setattr(trigger, "_note_overload", note)


def _caught_up_unnoticed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(trigger, "_note_backlog", lambda memory, *_, **__: memory)


LOAD_BUGS: tuple[PlantedBug, ...] = (
    PlantedBug("never behind", "a group that is behind counts as up to date", _never_behind),
    PlantedBug(
        "floor not raised", "a fenced incarnation is taken for its successor", _floor_not_raised
    ),
    PlantedBug(
        "answers of any plan", "an answer of an older plan is taken over", _answers_of_any_plan
    ),
    PlantedBug("stale for hours", "an old measurement triggers a repack", _stale_for_hours),
    PlantedBug(
        "highest capacity", "the strongest consumer stands for all that come", _highest_capacity
    ),
    PlantedBug(
        "backlog never cleared", "a report of no backlog leaves the old one", _backlog_never_cleared
    ),
    PlantedBug(
        "backlog without bound", "a backlog is load without a limit", _backlog_without_bound
    ),
    PlantedBug(
        "backlog of former holders", "a moved backlog counts twice", _backlog_of_former_holders
    ),
    PlantedBug(
        "nothing set aside", "a partition that no plan can help is judged too", _nothing_set_aside
    ),
    PlantedBug(
        "newest speed established", "one measurement is planned for", _newest_speed_established
    ),
    PlantedBug("highest forgotten", "only the speed of the moment counts", _highest_forgotten),
    PlantedBug("any move is worthwhile", "partitions move without a gain", _any_move_is_worthwhile),
    PlantedBug(
        "plans outlive their reason", "a plan is never dropped", _plans_outlive_their_reason
    ),
    PlantedBug("wanted for ever", "what an overtaken plan wanted is created", _wanted_for_ever),
    PlantedBug("growth not compared", "growth is never taken back", _growth_not_compared),
    PlantedBug(
        "repair counts as growth",
        "the successor of a lost consumer has to help, and ends when it does not",
        _repair_counts_as_growth,
    ),
    PlantedBug("stays too small", "a group grows to a third of what it may", _stays_too_small),
    PlantedBug(
        "late heartbeat dated by the newest",
        "after a pause of the controller it seems that little was carried, and then much",
        _late_heartbeat_dated_by_the_newest,
    ),
    PlantedBug("contention learned", "what is measured on trial is learned", _contention_learned),
    PlantedBug(
        "grown size not confirmed",
        "a group that grew with its load takes every lower figure for contention",
        _grown_size_not_confirmed,
    ),
    PlantedBug(
        "any size confirmed",
        "what was measured under contention counts as soon as the group keeps up",
        _any_size_confirmed,
    ),
    PlantedBug("costs forgotten", "a byte of every topic costs the same", _costs_forgotten),
    PlantedBug("bounds believed", "keeping up shows the capacity", _bounds_believed),
    PlantedBug("every figure counts", "a capacity changes with every report", _every_figure_counts),
    PlantedBug("measured not kept", "a new controller knows no capacity", _measured_not_kept),
    PlantedBug("failed number again", "the lowest number is always reused", _failed_number_again),
    PlantedBug(
        "oversize stretches all", "a hot partition widens every capacity", _oversize_stretches_all
    ),
    PlantedBug("overload since ever", "an overload need not last", _overload_since_ever),
    PlantedBug(
        "caught up unnoticed", "the end of a backlog is no reason to look", _caught_up_unnoticed
    ),
)
