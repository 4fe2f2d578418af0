"""Planted bugs in a consumer's messages, sizes and numbers: each breaks one line of its core."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from kit.planted_bug import PlantedBug
from penstock.consumer.core import (
    batch_planning,
    cadence,
    commands,
    log_sizes,
    ownership,
    reports,
    settings,
    shutdown_record,
    spark,
    state_machine,
    step_draft,
    table_upkeep,
)
from penstock.consumer.core.event_builder import EventBuilder
from penstock.consumer.core.inputs import MessagesRead
from penstock.consumer.core.pace import Allowance, CapacityEstimate, Pace
from penstock.consumer.core.ranges import plan_ranges
from penstock.consumer.core.topic_capacity import TopicCapacities
from penstock.messages import in_parts


def _forged_orders_obeyed(patch: pytest.MonkeyPatch) -> None:
    right = commands.read_messages

    def read_messages(draft: Any, given: Any) -> None:
        both = given.messages + given.not_from_leader
        right(draft, dataclasses.replace(given, messages=both, not_from_leader=()))

    patch.setitem(state_machine.HANDLERS, MessagesRead, read_messages)


def _parts_share_numbers(patch: pytest.MonkeyPatch) -> None:
    def parted(_: EventBuilder, whole: Any) -> Any:
        yield from in_parts(whole, "owned")

    patch.setattr(EventBuilder, "_in_parts", parted)


def _read_in_spite_of(field: str, harmless: Any) -> Callable[[pytest.MonkeyPatch], None]:
    def plant(patch: pytest.MonkeyPatch) -> None:
        right = ownership.readable

        def readable(owned: Any) -> Any:
            return right({p: dataclasses.replace(o, **{field: harmless}) for p, o in owned.items()})

        for module in (ownership, step_draft):
            patch.setattr(module, "readable", readable)

    return plant


def _unknown_sizes_asked_rarely(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(log_sizes, "UNKNOWN_PERIOD_MS", log_sizes.PERIOD_MS)


def _cold_batch_counts(patch: pytest.MonkeyPatch) -> None:
    right = Pace.after

    def after(self: Pace, **batch: Any) -> Pace:
        return right(dataclasses.replace(self, is_warm=True), **batch)

    patch.setattr(Pace, "after", after)


def _any_batch_shows_capacity(patch: pytest.MonkeyPatch) -> None:
    right = CapacityEstimate.after

    def after(self: CapacityEstimate, log_bytes: float, seconds: float, **_: bool) -> Any:
        return right(self, log_bytes, seconds, was_full=True)

    patch.setattr(CapacityEstimate, "after", after)


def _mixed_batches_count(patch: pytest.MonkeyPatch) -> None:
    right = TopicCapacities.after

    def after(self: TopicCapacities, sizes: Any, seconds: float, **how: bool) -> Any:
        for topic in sizes:
            self = right(self, {topic: sum(sizes.values())}, seconds, **how)
        return self

    patch.setattr(TopicCapacities, "after", after)


def _session_never_cold(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TopicCapacities, "cold", lambda self, *_: self)


def _always_alone(patch: pytest.MonkeyPatch) -> None:
    right = TopicCapacities.begun

    def begun(self: TopicCapacities, topic: str | None, now_ms: int) -> TopicCapacities:
        return dataclasses.replace(right(self, topic, now_ms), was_alone=False)

    patch.setattr(TopicCapacities, "begun", begun)


def _allowance_without_bound(patch: pytest.MonkeyPatch) -> None:
    right = Allowance.at

    def at(self: Allowance, now_ms: int) -> Allowance:
        return right(dataclasses.replace(self, saved_s_max=1e9), now_ms)

    patch.setattr(Allowance, "at", at)


def _names_go_first(patch: pytest.MonkeyPatch) -> None:
    def unfair(waiting: Any, budget_bytes: float) -> Any:
        alike = {p: dataclasses.replace(w, last_batch_number=0) for p, w in waiting.items()}
        return plan_ranges(alike, budget_bytes)

    patch.setattr(batch_planning, "plan_ranges", unfair)
    patch.setattr("behaviour.consumer.test_ranges.plan_ranges", unfair)


def _incarnation_by_the_clock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shutdown_record, "max", lambda _, now_ms: now_ms, raising=False)


def _mailbox_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shutdown_record, "_mailbox", lambda _: {})


def _periods_of_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(settings, "_ms", lambda seconds: round(seconds * 1000))


def _no_rest_after_upkeep(patch: pytest.MonkeyPatch) -> None:
    right = table_upkeep._rest
    patch.setattr(
        table_upkeep, "_rest", lambda draft, _, shortest_ms: right(draft, 0.0, shortest_ms)
    )


def _no_start_without_spark(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spark, "UnreachableError", KeyError)


MESSAGE_BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "forged orders obeyed",
        "a consumer obeys what the leading controller did not write",
        _forged_orders_obeyed,
    ),
    PlantedBug(
        "parts share numbers", "a message has the number of a part before", _parts_share_numbers
    ),
    PlantedBug(
        "ending read on",
        "a partition that is being stopped is read",
        _read_in_spite_of("ending", None),
    ),
    PlantedBug(
        "batch read again",
        "what a batch carries is read once more",
        _read_in_spite_of("is_in_batch", harmless=False),
    ),
    PlantedBug(
        "unknown sizes asked rarely",
        "an empty log is not weighed soon after its first record",
        _unknown_sizes_asked_rarely,
    ),
    PlantedBug("cold batch counts", "the time in which Spark warms up counts", _cold_batch_counts),
    PlantedBug(
        "any batch shows capacity",
        "a consumer with little to do is slow",
        _any_batch_shows_capacity,
    ),
    PlantedBug(
        "mixed batches count", "a batch of two topics shows what each costs", _mixed_batches_count
    ),
    PlantedBug(
        "session never cold", "the first batch of a Spark session counts", _session_never_cold
    ),
    PlantedBug("always alone", "other topics wait while one is measured", _always_alone),
    PlantedBug(
        "allowance without bound", "a limited consumer saves for ever", _allowance_without_bound
    ),
    PlantedBug("names go first", "a late name starves when not all fit", _names_go_first),
    PlantedBug(
        "incarnation by the clock",
        "a clock that was put back gives an old incarnation",
        _incarnation_by_the_clock,
    ),
    PlantedBug("mailbox forgotten", "the mailbox is read again from its bound", _mailbox_forgotten),
    PlantedBug(
        "no start without Spark",
        "a consumer that starts while Spark is away ends, and so does the next",
        _no_start_without_spark,
    ),
    PlantedBug("periods of nothing", "a short wait becomes none", _periods_of_nothing),
    PlantedBug(
        "log always busy",
        "many writers of a table commit as often as one",
        lambda patch: patch.setattr(cadence, "LOG_SHARE_MAX", 1e9),
    ),
    PlantedBug(
        "limit not told",
        "a consumer reports more than its settings let it read",
        lambda patch: patch.setattr(reports, "_within_limit", lambda _, speed: speed),
    ),
    PlantedBug(
        "only reports are due",
        "a consumer sleeps until its next report, whatever else is due",
        lambda patch: patch.setattr(state_machine, "_due_ms", lambda draft: draft.report_due_ms),
    ),
    PlantedBug("no rest after upkeep", "tables are kept without a pause", _no_rest_after_upkeep),
)
