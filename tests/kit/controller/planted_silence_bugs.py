"""Planted bugs in how the controller judges others: each breaks one line of it."""

import dataclasses
from typing import Any

import pytest

from kit.planted_bug import PlantedBug
from penstock.consumer.core import ledger_lookup, reports
from penstock.consumer.core.state import LedgerLookup
from penstock.controller.core import (
    heartbeats,
    holdings,
    membership,
    silence,
    state_machine,
    synchronisation,
)
from penstock.controller.core.step_draft import StepDraft


def _silence_by_the_clock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StepDraft, "heartbeat_time_ms", property(lambda self: self.now_ms))


def _any_heartbeat_counts(patch: pytest.MonkeyPatch) -> None:
    right = heartbeats.count_returned

    def count_returned(draft: StepDraft, given: Any) -> bool:
        known = draft.state.heartbeats
        awaited = dataclasses.replace(known, returned=known.heartbeats_sent - 1)
        draft.change(heartbeats=awaited)
        newest = {"controller_epoch": draft.state.controller_epoch, "number": known.heartbeats_sent}
        return right(draft, dataclasses.replace(given, **newest))

    patch.setattr(heartbeats, "count_returned", count_returned)


def _nobody_is_excused(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(holdings, "explained", lambda _, record, __: record)


def _excused_for_ever(patch: pytest.MonkeyPatch) -> None:
    right = silence._late_acknowledgements

    def late(draft: StepDraft) -> dict[Any, str]:
        return {c: why for c, why in right(draft).items() if "within 10 s" not in why}

    patch.setattr(silence, "_late_acknowledgements", late)


def _still_starting_not_believed(patch: pytest.MonkeyPatch) -> None:
    right = membership.note_what_is_listed

    def note(draft: StepDraft, given: Any) -> None:
        listed = {c: dataclasses.replace(d, is_starting=False) for c, d in given.consumers.items()}
        right(draft, dataclasses.replace(given, consumers=listed))

    patch.setattr(membership, "note_what_is_listed", note)
    patch.setattr(synchronisation, "note_what_is_listed", note)


def _starts_not_learned(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(membership, "STARTS_REMEMBERED", -1)


def _all_given_up_together(patch: pytest.MonkeyPatch) -> None:
    def all_of_them(_: StepDraft, late: Any, __: Any) -> list[Any]:
        return sorted(late)

    patch.setattr(silence, "now_given_up", all_of_them)
    patch.setattr(synchronisation, "now_given_up", all_of_them)


def _held_for_ever(patch: pytest.MonkeyPatch) -> None:
    right = silence.now_given_up

    def held(draft: StepDraft, late: Any, quiet: Any) -> list[Any]:
        given_up = right(draft, late, quiet)
        return [] if draft.state.shared_silence is not None else given_up

    patch.setattr(silence, "now_given_up", held)


def _quiet_ones_not_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(silence, "_quiet", lambda _: [])


def _every_end_in_vain(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        membership, "_was_in_vain", lambda _, record: record.incarnation and not record.has_carried
    )


def _confirmed_death_not_used(patch: pytest.MonkeyPatch) -> None:
    right = membership.incident

    def incident(draft: StepDraft, given: Any) -> None:
        right(draft, dataclasses.replace(given, has_ended=False))

    table = {
        key: incident if handler is right else handler
        for key, handler in state_machine.HANDLERS.items()
    }
    patch.setattr(state_machine, "HANDLERS", table)


def _who_starts_must_answer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(synchronisation, "_is_starting", lambda _: False)


def _who_waits_must_answer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(synchronisation, "has_been_quiet", lambda *_: True)


def _wait_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reports, "waits_for", lambda _: None)


def _batch_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reports, "works_on", lambda _: None)


def _wait_never_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ledger_lookup, "end_wait", lambda *_: None)


def _broken_table_blamed_on_its_consumer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(silence, "_set_explained_starts_aside", lambda _: None)


def _broken_table_holds_answers_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LedgerLookup, "was_put_off", property(lambda _: False))


def _named_start_counts_as_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(synchronisation, "replace", lambda holding, **_: holding)


SILENCE_BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "silence by the clock",
        "time counts that the controller did not hear",
        _silence_by_the_clock,
    ),
    PlantedBug("any heartbeat counts", "old and foreign heartbeats count", _any_heartbeat_counts),
    PlantedBug("nobody is excused", "what a consumer waits for is ignored", _nobody_is_excused),
    PlantedBug("excused for ever", "an explained delay has no end", _excused_for_ever),
    PlantedBug(
        "still starting not believed",
        "what the deployment says about a start is ignored",
        _still_starting_not_believed,
    ),
    PlantedBug("starts not learned", "slow starts do not move the bound", _starts_not_learned),
    PlantedBug("all given up together", "a shared fault ends the group", _all_given_up_together),
    PlantedBug("held for ever", "silent consumers are never given up", _held_for_ever),
    PlantedBug(
        "quiet ones not counted",
        "consumers that fall silent one after another are given up one after another",
        _quiet_ones_not_counted,
    ),
    PlantedBug(
        "every end in vain",
        "a consumer that has nothing to carry is given up after some ends, however rare",
        _every_end_in_vain,
    ),
    PlantedBug(
        "confirmed death not used",
        "a process that is gone is waited for",
        _confirmed_death_not_used,
    ),
    PlantedBug(
        "who starts must answer",
        "a new controller ends consumers that still start",
        _who_starts_must_answer,
    ),
    PlantedBug(
        "who waits must answer",
        "a new controller ends consumers that wait for the lake",
        _who_waits_must_answer,
    ),
    PlantedBug(
        "broken table blamed on its consumer",
        "a table that cannot be read gets a healthy consumer fenced",
        _broken_table_blamed_on_its_consumer,
    ),
    PlantedBug(
        "broken table holds answers back",
        "a query waits for a table that cannot be read",
        _broken_table_holds_answers_back,
    ),
    PlantedBug(
        "named start counts as read",
        "a new controller frees a start that waits for its table",
        _named_start_counts_as_read,
    ),
    PlantedBug("wait not told", "reports do not say what is waited for", _wait_not_told),
    PlantedBug("batch not told", "reports do not say that a batch runs", _batch_not_told),
    PlantedBug("wait never ends", "a lake that is back is still waited for", _wait_never_ends),
)
