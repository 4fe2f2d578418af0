"""Planted bugs: each breaks one thing, as a tired engineer might, and the suite must find it."""

import dataclasses
from typing import Any

import pytest

from kit.consumer.planted_bugs import CONSUMER_BUGS, replace_handler
from kit.consumer.planted_message_bugs import MESSAGE_BUGS
from kit.controller.planted_load_bugs import LOAD_BUGS
from kit.controller.planted_request_bugs import REQUEST_BUGS
from kit.controller.planted_silence_bugs import SILENCE_BUGS
from kit.controller.planted_told_bugs import TOLD_BUGS
from kit.planted_bug import PlantedBug
from penstock.consumer.core import commands, ledger_lookup, owned_partitions, spark
from penstock.consumer.core import step_draft as consumer_step_draft
from penstock.consumer.core.effects import Effect
from penstock.consumer.core.partition_progress import PartitionProgress
from penstock.controller.core import (
    group_management,
    holdings,
    housekeeping,
    leadership,
    membership,
    silence,
    state_machine,
    step_draft,
)
from penstock.controller.core import plan as planning
from penstock.controller.core.state import HoldingStatus
from penstock.controller.core.step_draft import StepDraft
from penstock.laboratory.protocol_simulation.ledger import Ledger
from penstock.model import Epoch


def _start_before_stop(patch: pytest.MonkeyPatch) -> None:
    def advance_one(draft: StepDraft, plan: Any, partition: Any) -> None:
        target = plan.target[partition]
        holding = draft.holdings.get(partition)
        if holding is not None and holding.consumer == target:
            if holding.status is HoldingStatus.OWNED:
                draft.close(partition)
        elif draft.is_ready(target):
            draft.start(partition, target)

    patch.setattr(group_management, "_advance_one", advance_one)


def _release_without_waiting(patch: pytest.MonkeyPatch) -> None:
    right = StepDraft.stop

    def stop(self: StepDraft, partition: Any) -> None:
        right(self, partition)
        self.release(partition)

    patch.setattr(StepDraft, "stop", stop)


def _epoch_check_dropped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commands, "_why_not", lambda *_: None)


def _highest_offset_wins(patch: pytest.MonkeyPatch) -> None:
    right = Ledger.__init__

    def init(self: Ledger, **kwargs: Any) -> None:
        right(self, **{**kwargs, "checks_start": False})

    patch.setattr(Ledger, "__init__", init)


def _partition_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = planning.with_real_consumers

    def forgetful(draft: StepDraft, answer: Any) -> Any:
        target = right(draft, answer)
        return {p: c for p, c in target.items() if p != max(target)} if len(target) > 1 else target

    patch.setattr("penstock.controller.core.reassignment.with_real_consumers", forgetful)


def _epoch_used_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        step_draft, "Epoch", lambda controller, number: Epoch(controller, (number + 1) // 2)
    )


def _busy_consumer_deleted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(housekeeping, "workers", lambda _: set())


def _waits_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(silence, "give_up_the_silent", lambda _: None)


def _answers_before_commands(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commands, "is_unsettled", lambda *_: False)
    patch.setattr(consumer_step_draft, "is_unsettled", lambda *_: False)


def _stops_in_mid_batch(patch: pytest.MonkeyPatch) -> None:
    right = commands._stop

    def stop(draft: Any, partition: Any, epoch: Any) -> bool:
        owned = draft.owned.get(partition)
        if owned is not None:
            draft.owned[partition] = dataclasses.replace(owned, is_in_batch=False)
        return right(draft, partition, epoch)

    patch.setattr(commands, "_stop", stop)


def _late_messages_accepted(patch: pytest.MonkeyPatch) -> None:
    right = membership.admit

    def admit(draft: StepDraft, message: Any) -> bool:
        record = draft.consumers.get(message.sender)
        if record is not None:
            draft.consumers.put(message.sender, dataclasses.replace(record, sequence=0))
        return right(draft, message)

    patch.setattr(membership, "admit", admit)


def _former_incarnation_accepted(patch: pytest.MonkeyPatch) -> None:
    right = membership.admit

    def admit(draft: StepDraft, message: Any) -> bool:
        record = draft.consumers.get(message.sender)
        if record is not None and record.incarnation:
            message = message.model_copy(
                update={"incarnation": record.incarnation, "sequence": record.sequence + 1}
            )
        return right(draft, message)

    patch.setattr(membership, "admit", admit)


def _report_acknowledges_too_much(patch: pytest.MonkeyPatch) -> None:
    right = StepDraft.hold

    def hold(self: StepDraft, partition: Any, holding: Any) -> None:
        right(self, partition, dataclasses.replace(holding, is_acknowledged=True))

    patch.setattr(StepDraft, "hold", hold)


def _clock_put_off(patch: pytest.MonkeyPatch) -> None:
    right = StepDraft.finish

    def finish(self: StepDraft, wait_until_ms: int) -> Any:
        return right(self, self.now_ms + 500)

    patch.setattr(StepDraft, "finish", finish)


def _sends_before_it_saves(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StepDraft, "save", lambda _: None)


def _ended_epochs_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = consumer_step_draft.StepDraft.end

    def end(self: Any, partition: Any, reason: Any, detail: str = "") -> None:
        right(self, partition, reason, detail)
        self.ended.pop(partition, None)

    patch.setattr(consumer_step_draft.StepDraft, "end", end)


def _vanished_still_read(patch: pytest.MonkeyPatch) -> None:
    right = housekeeping.measure

    def measure(draft: StepDraft, given: Any) -> None:
        kept = draft.stop
        draft.stop = lambda _: None  # type: ignore[method-assign,assignment]  # sabotage
        right(draft, given)
        draft.stop = kept  # type: ignore[method-assign]  # sabotage

    patch.setattr(housekeeping, "measure", measure)
    table = {
        key: measure if handler is right else handler
        for key, handler in state_machine.HANDLERS.items()
    }
    patch.setattr(state_machine, "HANDLERS", table)


def _refusal_swallowed(patch: pytest.MonkeyPatch) -> None:
    right = owned_partitions.leave_batch

    def leave_batch(draft: Any, partitions: Any, *, committed: Any, refused: Any) -> None:
        right(draft, partitions, committed=committed, refused=())

    patch.setattr(owned_partitions, "leave_batch", leave_batch)


def _put_off_for_ever(patch: pytest.MonkeyPatch) -> None:
    right = PartitionProgress.put_off

    def put_off(self: PartitionProgress, *given: Any) -> PartitionProgress:
        return dataclasses.replace(right(self, *given), not_before_ms=10**9)

    patch.setattr(PartitionProgress, "put_off", put_off)


def _ledger_not_asked_again(patch: pytest.MonkeyPatch) -> None:
    def not_read(draft: Any, _: Any) -> None:
        draft.is_reading_ledger = True

    replace_handler(patch, ledger_lookup.not_read, not_read)


def _spark_not_started_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spark, "StartSpark", lambda *_, **__: Effect())


def _new_topic_not_noticed(patch: pytest.MonkeyPatch) -> None:
    right = owned_partitions.settle

    def settle(draft: Any, partition: Any, entry: Any) -> None:
        known = draft.progress[partition].topic_id
        right(draft, partition, dataclasses.replace(entry, topic_id=known))

    patch.setattr(owned_partitions, "settle", settle)


def _two_leaders(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leadership, "doubt", lambda *_: None)


def _steps_down_by_hearsay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leadership, "doubt", lambda draft, _: state_machine.supersede(draft))


def _stray_left_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StepDraft, "send_stop", lambda *_: None)


def _failure_swallowed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(holdings, "FAILURES", frozenset())
    patch.setattr(holdings, "stopped", lambda *_: set())


def _listing_not_repeated(patch: pytest.MonkeyPatch) -> None:
    right = StepDraft._is_list_due

    def is_list_due(self: StepDraft) -> bool:
        return self.state.list_again_ms is None and right(self)

    patch.setattr(StepDraft, "_is_list_due", is_list_due)


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug("start before stop", "a move starts before its stop is sent", _start_before_stop),
    PlantedBug(
        "stop not waited for", "a stop counts as acknowledged when sent", _release_without_waiting
    ),
    PlantedBug("epoch check dropped", "a consumer obeys any command", _epoch_check_dropped),
    PlantedBug(
        "highest offset wins", "the ledger takes whatever ends higher", _highest_offset_wins
    ),
    PlantedBug("partition forgotten", "a plan leaves one partition out", _partition_forgotten),
    PlantedBug("epoch used again", "two starts share an epoch", _epoch_used_again),
    PlantedBug("busy consumer deleted", "everyone counts as idle", _busy_consumer_deleted),
    PlantedBug("waits for ever", "the silent are never fenced", _waits_for_ever),
    PlantedBug(
        "answers before its commands", "a query does not wait for them", _answers_before_commands
    ),
    PlantedBug("stops in mid-batch", "says stopped with a batch in flight", _stops_in_mid_batch),
    PlantedBug(
        "late messages believed", "the order of messages is not checked", _late_messages_accepted
    ),
    PlantedBug(
        "former incarnation believed",
        "the incarnation of a message is not checked",
        _former_incarnation_accepted,
    ),
    PlantedBug(
        "report acknowledges too much",
        "a report without a partition ends a start on its way",
        _report_acknowledges_too_much,
    ),
    PlantedBug("clock put off", "every message puts the next tick off", _clock_put_off),
    PlantedBug("sends before it saves", "nothing is made durable", _sends_before_it_saves),
    PlantedBug("ended epochs forgotten", "a late start begins again", _ended_epochs_forgotten),
    PlantedBug("vanished still read", "a deleted topic is not stopped", _vanished_still_read),
    PlantedBug("refusal swallowed", "a refused commit is not given up", _refusal_swallowed),
    PlantedBug("put off for ever", "a failed batch is never tried again", _put_off_for_ever),
    PlantedBug(
        "ledger not asked again", "a failed look-up is not repeated", _ledger_not_asked_again
    ),
    PlantedBug(
        "Spark not started again", "a lost Spark server stays lost", _spark_not_started_again
    ),
    PlantedBug(
        "new topic not noticed",
        "a topic that was made again and is shorter is waited for",
        _new_topic_not_noticed,
    ),
    PlantedBug("two leaders", "a superseded controller goes on", _two_leaders),
    PlantedBug(
        "steps down by hearsay",
        "a message that names a higher epoch ends the controller",
        _steps_down_by_hearsay,
    ),
    PlantedBug("stops are not sent", "a stop is noted but not sent", _stray_left_alone),
    PlantedBug("stop events ignored", "what a consumer gave up stays owned", _failure_swallowed),
    PlantedBug(
        "listing not repeated", "after a failed listing none follows", _listing_not_repeated
    ),
    *SILENCE_BUGS,
    *CONSUMER_BUGS,
    *MESSAGE_BUGS,
    *LOAD_BUGS,
    *REQUEST_BUGS,
    *TOLD_BUGS,
)
