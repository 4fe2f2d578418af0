"""Planted bugs in requests, roll-outs, what is saved and shown, and the controller's own checks."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from kit.planted_bug import PlantedBug
from penstock.controller.core import (
    backlog,
    group_management,
    holdings,
    housekeeping,
    invariants,
    load,
    membership,
    plan,
    requests,
    roll_out,
    saved_state,
    sentinel,
    settings,
    snapshot,
    state_machine,
    transitions,
)
from penstock.controller.core.effects import Send
from penstock.controller.core.housekeeping import workers
from penstock.controller.core.state_machine import Machine
from penstock.controller.core.step_draft import StepDraft
from penstock.messages import Direction, ServiceAnswer


def _foreign_code_rolled_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(requests, "not_allowed", lambda *_: "")


def _forgotten(**fields: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """A restarted controller begins without something that was saved."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = Machine.begin

        def begin(self: Machine, *, saved: Any, **given: Any) -> Any:
            kept = None if saved is None else dataclasses.replace(saved, **fields)
            return right(self, saved=kept, **given)

        patch.setattr(Machine, "begin", begin)

    return plant


def _not_saved(name: str, empty: Any) -> Callable[[pytest.MonkeyPatch], None]:
    def plant(patch: pytest.MonkeyPatch) -> None:
        right = saved_state.lasting_state_as_json
        patch.setattr(
            saved_state, "lasting_state_as_json", lambda state: {**right(state), name: empty}
        )

    return plant


def _not_checked(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(invariants, name, lambda *_: None)

    return plant


def _dropped_while_behind(patch: pytest.MonkeyPatch) -> None:
    right = load.group_load

    def group_load(*where: Any) -> Any:
        return dataclasses.replace(right(*where), is_behind=False)

    patch.setattr(group_management, "group_load", group_load)


def _backlog_shared_evenly(patch: pytest.MonkeyPatch) -> None:
    right = backlog.backlog_of

    def backlog_of(report: Any) -> Any:
        rows = tuple(row.model_copy(update={"end_offset": None}) for row in report.owned)
        return right(report.model_copy(update={"owned": rows}))

    patch.setattr(holdings, "backlog_of", backlog_of)


def _wishes_beyond_the_maximum(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(membership, "may_grow", lambda _: True)


def _spares_beyond_the_maximum(patch: pytest.MonkeyPatch) -> None:
    def idle_wanted(draft: StepDraft) -> int:
        chosen = draft.state.settings
        return max(0, chosen.spare_consumers, chosen.consumers_min - len(workers(draft)))

    for module in (housekeeping, plan, sentinel):
        patch.setattr(module, "idle_wanted", idle_wanted)


def _pauses_without_bound(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(requests, "PAUSES_MAX", 10**9)


def _resume_ends_both(patch: pytest.MonkeyPatch) -> None:
    right = requests._resume

    def resume(draft: StepDraft, request: Any) -> Any:
        return right(draft, request.model_copy(update={"direction": Direction.BOTH}))

    patch.setattr(requests, "_resume", resume)


def _others_take_over(patch: pytest.MonkeyPatch) -> None:
    right = roll_out._target_without
    patch.setattr(roll_out, "_target_without", lambda draft, _: right(draft, None))


def _old_spare_replaces(patch: pytest.MonkeyPatch) -> None:
    right, calls = housekeeping.idle, [0]

    def idle(draft: StepDraft) -> Any:
        calls[0] += 1
        return [] if calls[0] % 2 else right(draft)  # those to remove, then those that are warm

    patch.setattr(roll_out, "idle", idle)


def _bad_deployment_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(holdings, "note_failure", lambda *_: None)


def _roll_out_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(roll_out, "_unproven", lambda *_: [])


def _refused_deployment_rolled_out(patch: pytest.MonkeyPatch) -> None:
    right = roll_out.tried

    def tried(draft: StepDraft, given: Any) -> None:
        right(draft, dataclasses.replace(given, refusal=""))

    table = {
        key: tried if handler is right else handler
        for key, handler in state_machine.HANDLERS.items()
    }
    patch.setattr(state_machine, "HANDLERS", table)


def _roll_back_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = saved_state._roll_out

    def read(saved: Any) -> Any:
        return right(None if saved is None else {**saved, "undoes": None, "fault": ""})

    patch.setattr(saved_state, "_roll_out", read)


def _another_option_is_changed(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(settings._OPTIONS, "consumers_min", "controller.spare_consumers")


def _milliseconds_as_seconds(patch: pytest.MonkeyPatch) -> None:
    right = settings._as_in_a_file

    def as_in_a_file(name: str, value: Any) -> Any:
        text = right(name, value)
        return f"{value!r}s" if name.endswith("_ms") else text

    patch.setattr(settings, "_as_in_a_file", as_in_a_file)


def _moves_not_shown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(snapshot, "_moves", lambda _: [])


def _shared_silence_not_shown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(snapshot, "_hold", lambda _: None)


class _Everything:
    def __contains__(self, _: object) -> bool:
        return True


def _any_transition(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transitions, "_ALLOWED", _Everything())


def _answers_not_recorded(patch: pytest.MonkeyPatch) -> None:
    def answer(
        draft: StepDraft, request_id: str, outcome: Any, detail: str, *_: Any, **__: Any
    ) -> None:
        epoch = draft.state.controller_epoch
        answered = ServiceAnswer(
            request_id=request_id, controller_epoch=epoch, outcome=outcome, detail=detail
        )
        draft.do(Send(answered))

    for module in (requests, roll_out):
        patch.setattr(module, "answer", answer)


def _idle_go_at_once(patch: pytest.MonkeyPatch) -> None:
    right = sentinel._let_the_idle_go

    def let_go(draft: StepDraft) -> None:
        draft.change(idle_since_ms=-(10**9))
        right(draft)

    patch.setattr(sentinel, "_let_the_idle_go", let_go)


def _packed_without_consumers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sentinel, "_is_waiting", lambda *_: False)


REQUEST_BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "foreign code rolled out",
        "a request brings code that the settings do not allow",
        _foreign_code_rolled_out,
    ),
    PlantedBug("pauses forgotten", "a restart ends every pause", _forgotten(pauses=())),
    PlantedBug("requests forgotten", "a restart obeys old requests again", _forgotten(requests=())),
    PlantedBug("roll-out forgotten", "a restart ends a roll-out", _forgotten(roll_out=None)),
    PlantedBug(
        "dropped while behind", "a plan against a backlog is dropped", _dropped_while_behind
    ),
    PlantedBug(
        "backlog shared evenly", "a backlog is not where its offsets are", _backlog_shared_evenly
    ),
    PlantedBug(
        "wishes beyond the maximum",
        "a consumer is wanted in a full group",
        _wishes_beyond_the_maximum,
    ),
    PlantedBug(
        "spares beyond the maximum",
        "more spares are waited for than there is room for",
        _spares_beyond_the_maximum,
    ),
    PlantedBug("pauses without bound", "requests can fill the state", _pauses_without_bound),
    PlantedBug("resume ends both", "resuming one side ends the other pause", _resume_ends_both),
    PlantedBug("others take over", "a roll-out does not use its replacement", _others_take_over),
    PlantedBug(
        "bad deployment kept",
        "a roll-out goes on although its consumers stop their partitions",
        _bad_deployment_kept,
    ),
    PlantedBug(
        "roll-out does not wait",
        "the next consumer is replaced before the new one has carried anything",
        _roll_out_does_not_wait,
    ),
    PlantedBug(
        "refused deployment rolled out",
        "the trial of a new deployment counts for nothing",
        _refused_deployment_rolled_out,
    ),
    PlantedBug("roll-back forgotten", "a restart ends a roll-back", _roll_back_forgotten),
    PlantedBug("old spare replaces", "a roll-out replaces old by old", _old_spare_replaces),
    PlantedBug(
        "overrides not saved",
        "what requests changed is lost with the process",
        _not_saved("overrides", {}),
    ),
    PlantedBug("pauses not saved", "a pause is lost with the process", _not_saved("pauses", [])),
    PlantedBug(
        "another option is changed",
        "a request changes another option than it names",
        _another_option_is_changed,
    ),
    PlantedBug("milliseconds as seconds", "a request's wait is too long", _milliseconds_as_seconds),
    PlantedBug("moves not shown", "status does not show what moves", _moves_not_shown),
    PlantedBug(
        "shared silence not shown", "status does not show who is held", _shared_silence_not_shown
    ),
    PlantedBug("any transition", "the table of transitions does not bind", _any_transition),
    PlantedBug(
        "maximum not checked",
        "the controller does not check the size of its group",
        _not_checked("_group_is_within_its_bounds"),
    ),
    PlantedBug(
        "stops not checked",
        "the controller does not check that a stop came before a start",
        _not_checked("_stop_before_start"),
    ),
    PlantedBug("answers not recorded", "the history has no requests", _answers_not_recorded),
    PlantedBug("idle go at once", "idle consumers have no grace", _idle_go_at_once),
    PlantedBug(
        "packed without consumers",
        "the packer is asked although no consumer can be had",
        _packed_without_consumers,
    ),
)
