"""The controller's process: take the lead, synchronise, then one step for each input.

Every step first saves the new state, then sends its messages in one transaction under the
controller's fixed transactional id. A controller that the broker has fenced ends with exit code 8.
Consumers keep running when it ends; the next controller finds them. A standby first waits until no
other controller leads; any other one is refused while a controller of another place leads.
"""

import os
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from penstock.controller.core.decisions import Decision, is_worth_a_line, told_since
from penstock.controller.core.effects import (
    AskWhoLeads,
    Effect,
    RestoreDeploymentTemplate,
    SaveState,
    Send,
    SendHeartbeat,
    SetDeploymentTemplate,
    StepDown,
    WaitUntil,
)
from penstock.controller.core.inputs import (
    Input,
    LeadershipConfirmed,
    LeadershipLost,
    NewSettings,
    Requested,
    Tick,
)
from penstock.controller.core.state import State
from penstock.controller.core.state_machine import Machine
from penstock.controller.process.effect_runner import EffectRunner
from penstock.controller.process.first_trial import require_that_it_can_work
from penstock.controller.process.heartbeats import Heartbeats
from penstock.controller.process.inbound import InboundReaders, Inbox
from penstock.controller.process.kept_settings import KeptSettings
from penstock.controller.process.metrics import ControllerMetrics
from penstock.controller.process.prefix_holder import Holder, holder_of, require_free_prefix
from penstock.controller.process.published_status import PublishedStatus
from penstock.controller.process.saved_states import FOLDER, SavedStates, newer, owner_name
from penstock.controller.process.settings_in_force import GroupSettings
from penstock.controller.process.standby import Standby
from penstock.controller.process.status_file import status_pause_s
from penstock.deployment import DeploymentBackend
from penstock.errors import PenstockError
from penstock.kafka_io.control_topics import make_control_topics
from penstock.kafka_io.leading_producer import FencedError, LeadingProducer, Outgoing
from penstock.kafka_io.partition_reader import KafkaRecord
from penstock.messages import (
    LeadershipClaim,
    LeadershipEnd,
    Message,
    Refusal,
    ServiceAnswer,
    ServiceOutcome,
    encode,
)
from penstock.messages.fields import ANSWER_LENGTH_MAX
from penstock.model import ConsumerId
from penstock.model.sentences import cut_at_word
from penstock.processes import REPAIR_EVERY_S
from penstock.settings import Settings
from penstock.settings.time_zone import utc_offset_s
from penstock.state_directory import StateDirectory
from penstock.telemetry import Health, MetricStore, get_logger


class ControllerProcess:
    def __init__(
        self,
        settings: Settings,
        deployment: DeploymentBackend,
        *,
        machine: Machine | None = None,
        health: Health | None = None,
        metrics: MetricStore | None = None,
        is_standby: bool = False,
        tries_first: bool = False,
        started_with: GroupSettings | None = None,
        read_again: Callable[[], GroupSettings] | None = None,
        calibrated: Mapping[str, float] | None = None,
    ) -> None:
        """`tries_first` tries the deployment before it leads a group that has no consumers yet.

        `started_with` says where the settings come from; `read_again` reads them again.
        `calibrated` is what one consumer carries of topics, until it is measured.
        """
        self._settings = settings
        self._is_standby = is_standby
        self._tries_first = tries_first
        self._calibrated = calibrated
        self._machine = machine or Machine()
        self._health = health or Health()
        self._metrics = ControllerMetrics(settings, metrics)
        self._log = get_logger(component="controller")
        self._inbox: Inbox = queue.Queue()
        self._path = Path(settings.controller.directory)
        self._kept_settings = KeptSettings(
            started_with or GroupSettings(settings), read_again, self._path, self._log
        )
        owner = owner_name(settings.lake.group)
        self._directory = StateDirectory(
            self._path / FOLDER,
            owner,
            holder=str(Holder.of_this_process(settings)),
            remedy="Stop that controller first, or take another folder: "
            "--set controller.directory=DIR.",
        )
        self._saved_states = SavedStates(
            settings, self._directory, self._log, now_ms=_now_ms, unix_ms=_unix_ms
        )
        self._unsent_state: Outgoing | None = None
        self._deployment = deployment
        self._producer = LeadingProducer(
            settings.kafka,
            settings.topics.names.transactional_id(settings.lake.group),
            has_successor=self._has_successor,
        )
        self._mailboxes = 0
        self._mailboxes_lock = threading.Lock()
        self._is_ending = False
        self._is_degraded = False

    def run(self) -> None:
        """Lead until SIGTERM or SIGINT; raises when a newer controller leads."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        if self._is_standby:
            Standby(
                self._settings, self._health, self._log, is_ending=lambda: self._is_ending
            ).wait()
        if not self._is_ending:
            self._lead()
        self._log.info("ended")

    def _lead(self) -> None:
        with self._directory:
            if not self._is_standby:  # a standby has waited for the other one's end
                require_free_prefix(self._settings, on_wait=self._waits_for)
            in_file = self._saved_states.in_file()
            if self._tries_first:
                template = self._kept_settings.template(in_file.template)
                require_that_it_can_work(self._deployment, template, self._log)
            claim = LeadershipClaim(claimed_by=f"{socket.gethostname()} process {os.getpid()}")
            offset = self._producer.lead(self._outgoing(claim))
            in_kafka = self._saved_states.in_kafka()
            remembered = newer(in_file, in_kafka)
            saved = remembered.state
            epoch = max(offset + 1, 0 if saved is None else saved.controller_epoch + 1)
            self._log.info(
                "leading",
                epoch=epoch,
                remembered=saved is not None,
                remembered_in="kafka" if remembered is in_kafka else "file",
            )
            self._holder = replace(Holder.of_this_process(self._settings), epoch=epoch)
            self._producer.send([self._holder.record(self._settings)])
            self._inbound = InboundReaders(
                self._settings,
                self._inbox,
                self._log,
                controller_epoch=epoch,
                service_since=remembered.service_next_offset,
                on_unreadable_request=self._answer_unreadable,
            )
            self._heartbeats = Heartbeats(self._settings, self._log)
            self._status = PublishedStatus(self._settings, epoch, self._kept_settings, self._log)
            self._effect_runner = EffectRunner(
                self._deployment,
                self._inbox,
                self._log,
                template=self._kept_settings.template(remembered.template),
                former=remembered.former_template,
                make_mailboxes=self._make_mailboxes,
                chosen=lambda: self._state.chosen,
            )
            request = self._kept_settings.roll_out_of(remembered, epoch)
            if request is not None:
                self._inbox.put(lambda now_ms: Requested(now_ms, request))
            try:
                self._lead_on(epoch, saved, self._kept_settings.due(remembered))
            finally:
                self._inbound.close()
                self._effect_runner.close()
                self._status.close()
                self._producer.close()

    def _waits_for(self, holder: Holder) -> None:
        self._log.info("listens_whether_another_leads", last_known=str(holder))

    def _end(self, *_: int | FrameType | None) -> None:
        self._is_ending = True
        self._inbox.put(self._tick)

    def _lead_on(self, epoch: int, saved: State | None, due: NewSettings | None) -> None:
        state, effects = self._machine.begin(
            controller_epoch=epoch,
            settings=self._settings,
            now_ms=_now_ms(),
            saved=saved,
            due=due,
            calibrated=self._calibrated,
        )
        self._state = state
        self._metrics.begun(state)
        log_decisions(self._log, () if saved is None else saved.history, state.history)
        self._kept_settings.tell(state, self._effect_runner.template, _unix_ms())
        self._inbound.listen()
        self._health.begun()
        wait_until_ms = self._carry_out(effects)
        repair_at_s = status_at_s = 0.0
        while not self._is_ending:
            self._health.beat()
            now_s = time.monotonic()
            if now_s >= repair_at_s:
                self._effect_runner.repair()
                repair_at_s = now_s + REPAIR_EVERY_S
            if now_s >= status_at_s:
                status_at_s = now_s + status_pause_s(self._write_status())
            due_s = min(wait_until_ms / 1000, repair_at_s, status_at_s)
            wait_until_ms = self._step(self._next(max(0.0, due_s - time.monotonic())))
        self._write_status(has_ended=True)
        ended = self._holder.ended().record(self._settings)
        self._send([self._outgoing(LeadershipEnd(controller_epoch=epoch)), ended])

    def _next(self, wait_s: float) -> Input:
        try:
            given = self._inbox.get(timeout=wait_s) if wait_s else self._inbox.get_nowait()
        except queue.Empty:
            return self._tick(_now_ms())
        if isinstance(given, Exception):
            raise given
        return self._kept_settings.with_new_settings(given(_now_ms()))

    def _tick(self, now_ms: int) -> Tick:
        unix_ms = _unix_ms()
        return Tick(now_ms, unix_ms, utc_offset_s(self._state.chosen.packing.time_zone, unix_ms))

    def _step(self, given: Input) -> int:
        before, began_s = self._state, time.perf_counter()
        self._state, effects = self._machine.step(before, given)
        took_s = time.perf_counter() - began_s
        log_decisions(self._log, before.history, self._state.history)
        self._metrics.stepped(before, self._state, took_s, is_degraded=self._is_degraded)
        return self._carry_out(effects)

    # Effects, in order

    def _carry_out(self, effects: Sequence[Effect]) -> int:
        messages: list[Outgoing] = []
        later: list[Effect] = []
        wait_until_ms = _now_ms()
        _end_if_stepped_down(effects)
        for effect in effects:
            if isinstance(effect, SaveState):
                self._save()
            elif isinstance(effect, Send | AskWhoLeads):
                messages.append(self._to_send(effect))
            elif isinstance(effect, SendHeartbeat):
                self._heartbeats.send(effect.message)
            elif isinstance(effect, WaitUntil):
                wait_until_ms = effect.at_ms
            elif isinstance(effect, (SetDeploymentTemplate, RestoreDeploymentTemplate)):
                self._effect_runner.do(effect)
            else:
                later.append(effect)
        if self._unsent_state is not None:
            messages.insert(0, self._unsent_state)
        if self._send(messages) and AskWhoLeads() in effects:
            self._inbox.put(LeadershipConfirmed)
        # A controller that was fenced creates and deletes nothing, and one that takes over without
        # the file knows what led to a creation.
        for effect in later:
            self._effect_runner.do(effect)
        return wait_until_ms

    def _to_send(self, effect: Send | AskWhoLeads) -> Outgoing:
        """To ask who leads, write who does: that the broker takes it from us is the answer."""
        if isinstance(effect, AskWhoLeads):
            return self._holder.record(self._settings)
        return self._outgoing(effect.message)

    def _save(self) -> None:
        """Write the file, and prepare the record that goes with the step's messages."""
        record = self._saved_states.save(
            self._state,
            self._effect_runner.template,
            self._inbound.service_next_offset,
            self._effect_runner.former,
        )
        self._unsent_state = record or self._unsent_state
        saved = self._directory.unusable is None
        if not saved and not self._is_degraded:
            # A restart would synchronise anyway, so leading without a saved state is better than
            # not leading.
            self._log.error("state_not_saved", why=self._directory.unusable)
        self._is_degraded = not saved

    def _send(self, messages: Sequence[Outgoing]) -> bool:
        """Whether the broker took them."""
        try:
            self._producer.send(messages)
        except FencedError:
            # The core records it and steps down, in that order.
            self._step(LeadershipLost(_now_ms()))
            raise
        except PenstockError as error:
            # Not sent. The core sends again whatever is not acknowledged.
            self._log.warning("not_sent", error=str(error), messages=len(messages))
            self._health.lacks("kafka", "the broker takes no commands")
            return False
        if messages:
            self._health.lacks("kafka", None)
        if self._unsent_state in messages:
            self._unsent_state = None
        return True

    def _has_successor(self) -> bool:
        newest = holder_of(self._settings)
        return newest is not None and newest.epoch > self._holder.epoch

    def _outgoing(self, message: Message) -> Outgoing:
        encoded = encode(message, group=self._settings.lake.group)
        topic = self._settings.topics.names.of_role(message.topic_role)
        return Outgoing(topic, message.mailbox, encoded.value, encoded.headers)

    def _answer_unreadable(self, record: KafkaRecord, refusal: Refusal) -> None:
        """Called by the messages thread: answer a request that could not be read."""
        named = dict(record.headers).get("request_id") or b""
        request_id = named.decode(errors="replace")
        try:
            answer = ServiceAnswer(
                request_id=request_id or f"offset-{record.offset}",
                controller_epoch=self._state.controller_epoch,
                outcome=ServiceOutcome.REFUSED,
                detail=cut_at_word(f"{refusal.code}: {refusal.detail}", ANSWER_LENGTH_MAX),
            )
        except ValueError:
            return  # not even its name can be repeated; the refusal is in the log
        self._inbox.put(lambda now_ms: self._answered(answer, now_ms))

    def _answered(self, answer: ServiceAnswer, now_ms: int) -> Input:
        self._send([self._outgoing(answer)])
        return self._tick(now_ms)

    def _make_mailboxes(self, consumer: ConsumerId) -> None:
        """Called by a worker thread before a consumer is created: it must find its mailboxes."""
        with self._mailboxes_lock:  # several consumers are created at once
            if consumer < self._mailboxes:
                return
            for line in make_control_topics(self._settings, highest_consumer_id=consumer):
                self._log.info("topic_changed", explanation=line)
            self._mailboxes = consumer + self._settings.topics.consumers_ahead

    def _write_status(self, *, has_ended: bool = False) -> float:
        """For `penstock status`; returns the processor time it takes, in seconds."""
        return self._status.write(
            self._state,
            self._effect_runner.template,
            _unix_ms(),
            is_degraded=self._is_degraded,
            has_ended=has_ended,
            freshness=self._metrics.freshness(),
        )


def _end_if_stepped_down(effects: Sequence[Effect]) -> None:
    for effect in effects:
        if isinstance(effect, StepDown):
            raise FencedError(
                f"This controller steps down: {effect.reason}.",
                remedy="Nothing to do if a newer one is meant to lead.",
            )


def log_decisions(log: Any, before: tuple[Decision, ...], after: tuple[Decision, ...]) -> None:
    """The log has what the history has; a fault that repeats gets few lines."""
    for one in told_since(before, after):
        if is_worth_a_line(one):
            repeated = {} if one.times == 1 else {"times": one.times}
            log.info("decided", code=one.code.value, why=one.explanation, **repeated)


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _unix_ms() -> int:
    return time.time_ns() // 1_000_000
