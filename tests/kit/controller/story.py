"""Stories: what happens to a controller, line by line, and what it does about it.

A story is a text file. A line that starts in the first column is an input; the indented lines under
it are what the controller did: the decisions it explained, the effects, and its new state. Lines
that begin with `#` are for the reader. `make stories` writes the indented lines again.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from kit.controller.story_trace import said_effect
from kit.controller.story_words import (
    answered_rows,
    as_value,
    chosen,
    name_values,
    partition_rows,
    report_values,
)
from penstock.controller.core import effects as act
from penstock.controller.core import inputs
from penstock.controller.core.decisions import Decision, told_since
from penstock.controller.core.invariants import check_whole
from penstock.controller.core.saved_state import decode_state, encode_state
from penstock.controller.core.state import State
from penstock.controller.core.state_machine import Machine
from penstock.messages import (
    ChangeSettings,
    CommandRefusedEvent,
    ConsumerPhase,
    ConsumerReport,
    Direction,
    FromConsumer,
    OwnedPartition,
    Pause,
    RefusalReason,
    RefusedPartition,
    ReportedPartition,
    Resume,
    ServiceRequest,
    StartConsumingEvent,
    StartedPartition,
    StateQueryResponse,
    StopConsumingEvent,
    StoppedPartition,
    StopReason,
    UpdateDeployments,
)
from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing import Packing
from penstock.settings import Settings, changed_settings

# The catalogue, with figures that are easy to follow: capacities of 100, filled completely.
CATALOGUE = changed_settings(
    Settings(),
    {
        "packing.capacity": "100B/s",
        "packing.target_utilisation": 1,
        "packing.scale_down_period": "60s",
        "packing.over_capacity_for": "0s",
        "packing.look_ahead": "0s",
        "controller.consumers_min": 0,
        "controller.spare_consumers": 0,
        "controller.catch_up": "0s",
    },
)


class Storyteller:
    """Feeds the machine with lines and says what it did."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.state: State | None = None
        self.calibrated: dict[str, float] = {}
        self.saved: bytes | None = None
        self.settings = CATALOGUE
        self.sequence: dict[int, int] = {}
        self.incarnation: dict[int, int] = {}
        self.last: FromConsumer | None = None
        self._said: tuple[Decision, ...] = ()
        self.logs: dict[TopicPartition, inputs.LogExtent] = {}

    def tell(self, line: str) -> list[str]:
        for pattern, method in _LINES:
            match = re.fullmatch(pattern, line)
            if match is not None:
                return method(self, *match.groups())
        raise ValueError(f"no such line in a story: {line!r}")

    # Outside of the machine

    def configure(self, text: str) -> list[str]:
        values, self.calibrated = chosen(text)
        self.settings = changed_settings(self.settings, values)
        return []

    def wait(self, ms: str) -> list[str]:
        self.now_ms += int(ms)
        return []

    def restart(self, consumer: str) -> list[str]:
        number = int(consumer)
        self.incarnation[number] = self.incarnation.get(number, 1) + 1
        self.sequence[number] = 0
        return []

    def begin(self, epoch: str, how: str | None) -> list[str]:
        saved = None
        if how == " with its state file" and self.saved is not None:
            outcome = decode_state(self.saved, self.settings)
            assert isinstance(outcome, State)
            saved = outcome
        self._said = saved.history if saved else ()
        given: Any = {"settings": self.settings, "saved": saved, "calibrated": self.calibrated}
        state, effects = Machine().begin(controller_epoch=int(epoch), now_ms=self.now_ms, **given)
        return self._trace(None, state, effects)

    # Inputs

    def give(self, given: inputs.Input) -> list[str]:
        assert self.state is not None, "the controller has not started"
        before = self.state
        state, effects = Machine().step(before, given)
        check_whole(state)
        return self._trace(before, state, effects)

    def listen(self, ms: str) -> list[str]:
        """Ticks and heartbeats that come back, for as long as this in heartbeat time."""
        lines: list[str] = []
        period_ms = round(self.settings.controller.heartbeat_period * 1000)
        for _ in range(int(ms) // period_ms):
            lines += self.tick(str(period_ms))
            lines += self.heartbeat()
        return lines

    def heartbeat(self) -> list[str]:
        """The last heartbeat that was sent comes back."""
        assert self.state is not None
        sent, epoch = self.state.heartbeats.heartbeats_sent, self.state.controller_epoch
        return self.give(inputs.HeartbeatReturned(self.now_ms, epoch, sent))

    def tick(self, ms: str) -> list[str]:
        self.now_ms += int(ms)
        return self.give(inputs.Tick(self.now_ms, unix_ms=self.now_ms))

    def listed(self, names: str, *, is_current: bool = False) -> list[str]:
        found = {}
        for name in names.split():
            is_starting = name.endswith("*")
            consumer, _, version = name.removesuffix("*").partition("/")
            found[ConsumerId(int(consumer))] = inputs.Deployed(int(version or 0), is_starting)
        return self.give(inputs.DeploymentsListed(self.now_ms, found, is_current))

    def listing_fails(self, why: str) -> list[str]:
        return self.give(inputs.ListingFailed(self.now_ms, why))

    def measured(self, text: str) -> list[str]:
        speeds = {
            TopicPartition.parse(name): None if value == "?" else float(value)
            for name, value in name_values(text)
        }
        return self.give(inputs.SpeedsMeasured(self.now_ms, speeds, logs=self.logs))

    def logs_reach(self, text: str) -> list[str]:
        """From where to where the logs reach; the next measurement says it. Records of 10 bytes."""
        for name, value in name_values(text):
            start, _, end = value.partition("..")
            extent = inputs.LogExtent(int(start), int(end), 10.0)
            self.logs = {**self.logs, TopicPartition.parse(name): extent}
        return []

    def packed(self, text: str) -> list[str]:
        assert self.state is not None
        owned: dict[ConsumerId, list[TopicPartition]] = {}
        for part in text.split(";"):
            consumer, _, names = part.partition(":")
            partitions = [TopicPartition.parse(n) for n in names.split()]
            owned[ConsumerId(int(consumer))] = partitions
        packing = Packing(Assignment(owned))
        return self.give(inputs.Packed(self.now_ms, self.state.packing_number, packing))

    def packing_fails(self, why: str) -> list[str]:
        assert self.state is not None
        return self.give(inputs.PackingFailed(self.now_ms, self.state.packing_number, why))

    def creation_fails(self, consumer: str, why: str) -> list[str]:
        failed = inputs.CreationFailed(self.now_ms, ConsumerId(int(consumer)), why)
        return self.give(failed)

    def incident(self, consumer: str, explanation: str) -> list[str]:
        return self.give(
            inputs.ConsumerIncident(self.now_ms, ConsumerId(int(consumer)), explanation)
        )

    def ended(self, consumer: str) -> list[str]:
        number = ConsumerId(int(consumer))
        explanation = "died and was started again"
        return self.give(inputs.ConsumerIncident(self.now_ms, number, explanation, has_ended=True))

    def deleted(self, consumer: str) -> list[str]:
        return self.give(inputs.ConsumerDeleted(self.now_ms, ConsumerId(int(consumer))))

    def leadership_lost(self) -> list[str]:
        return self.give(inputs.LeadershipLost(self.now_ms))

    def leadership_confirmed(self) -> list[str]:
        return self.give(inputs.LeadershipConfirmed(self.now_ms))

    def deployment_tried(self, refusal: str | None, note: str | None) -> list[str]:
        roll_out = None if self.state is None else self.state.roll_out
        version = 0 if roll_out is None else roll_out.version
        tried = inputs.DeploymentTried(self.now_ms, version, refusal or "", note or "")
        return self.give(tried)

    def request(self, name: str, what: str, text: str | None) -> list[str]:
        values = {key: as_value(value) for key, value in name_values(text or "")}
        made: ServiceRequest
        if what in {"pause", "resume"}:
            direction = Direction(values.pop("direction", "both"))
            kind = Pause if what == "pause" else Resume
            made = kind(request_id=name, direction=direction, **values)
        elif what == "settings":
            made = ChangeSettings(request_id=name, **values)
        elif what == "update":
            made = UpdateDeployments(request_id=name, **values)
        else:
            made = ServiceRequest(request_id=name)
        return self.give(inputs.Requested(self.now_ms, made))

    # What consumers say

    def _head(self, consumer: str) -> dict[str, Any]:
        assert self.state is not None
        number = int(consumer)
        self.sequence[number] = self.sequence.get(number, 0) + 1
        return {
            "consumer_id": number,
            "incarnation": self.incarnation.setdefault(number, 1),
            "sequence": self.sequence[number],
            "controller_epoch": self.state.controller_epoch,
            "plan_number": self.state.plan_number,
        }

    def again(self) -> list[str]:
        assert self.last is not None, "nobody has spoken yet"
        return self.reads(self.last)

    def reads(self, message: FromConsumer) -> list[str]:
        self.last = message
        return self.give(inputs.ConsumerMessageRead(self.now_ms, message))

    def reports(self, consumer: str, text: str | None, rest: str | None) -> list[str]:
        extra = report_values(rest or "")
        phase = ConsumerPhase(extra.pop("phase", "running"))
        # A consumer of which nothing waits has read the ends of its logs.
        is_at_the_end = extra.get("behind_records") == 0
        ends: dict[str, Any] = {"next_offset": 9, "end_offset": 9} if is_at_the_end else {}
        rows = tuple(ReportedPartition(**{**ends, **row}) for row in partition_rows(text))
        head = self._head(consumer)
        report = {**head, "report_number": 1, "phase": phase, "owned": rows, **extra}
        return self.reads(ConsumerReport.model_validate(report, strict=False))

    def started(self, consumer: str, text: str) -> list[str]:
        rows = tuple(StartedPartition(**row) for row in partition_rows(text))
        return self.reads(StartConsumingEvent(**self._head(consumer), partitions=rows))

    def stopped(self, consumer: str, text: str, reason: str | None) -> list[str]:
        why = StopReason(reason or "commanded")
        rows = tuple(StoppedPartition(**row, reason=why) for row in partition_rows(text))
        return self.reads(StopConsumingEvent(**self._head(consumer), partitions=rows))

    def answers(self, consumer: str, text: str) -> list[str]:
        assert self.state is not None
        rows = tuple(OwnedPartition(**row) for row in answered_rows(text))
        head = self._head(consumer)
        return self.reads(
            StateQueryResponse(
                **head,
                query_controller_epoch=self.state.controller_epoch,
                query_number=max(1, self.state.queries_sent),
                owned=rows,
            )
        )

    def refuses(self, consumer: str, text: str, reason: str) -> list[str]:
        assert self.state is not None
        rows = tuple(RefusedPartition(**row) for row in partition_rows(text))
        return self.reads(
            CommandRefusedEvent(
                **self._head(consumer),
                refused_event_type="StartConsumingCommand",
                refused_controller_epoch=self.state.controller_epoch,
                refused_plan_number=self.state.plan_number,
                reason=RefusalReason(reason),
                partitions=rows,
            )
        )

    def obeyed_another(self, consumer: str, epoch: str) -> list[str]:
        head = {**self._head(consumer), "controller_epoch": int(epoch)}
        return self.reads(ConsumerReport(**head, report_number=1, phase=ConsumerPhase.RUNNING))

    # What the machine did

    def _trace(
        self, before: State | None, after: State, effects: tuple[act.Effect, ...]
    ) -> list[str]:
        told = told_since(self._said, after.history)
        lines = [f"  {d.code.value}: {d.explanation}" for d in told]
        self._said = after.history
        for effect in effects:
            if isinstance(effect, act.SaveState):
                self.saved = encode_state(after)
            lines += said_effect(effect)
        if before is None or before.phase is not after.phase:
            lines.append(f"  = {after.phase.value}")
        self.state = after
        return lines


_LINES: list[tuple[str, Callable[..., list[str]]]] = [
    (r"settings (.+)", Storyteller.configure),
    (r"(\d+) ms pass", Storyteller.wait),
    (r"consumer (\d+) starts again", Storyteller.restart),
    (r"a controller starts with epoch (\d+)( with its state file)?", Storyteller.begin),
    (r"tick \+(\d+)", Storyteller.tick),
    (r"the controller hears itself for (\d+) ms", Storyteller.listen),
    (r"the heartbeat comes back", Storyteller.heartbeat),
    (r"deployed:(.*)", Storyteller.listed),
    (r"deployed now:(.*)", partial(Storyteller.listed, is_current=True)),
    (r"the deployments cannot be listed: (.+)", Storyteller.listing_fails),
    (r"speeds (.+)", Storyteller.measured),
    (r"logs (.+)", Storyteller.logs_reach),
    (r"packed (.+)", Storyteller.packed),
    (r"the packer fails: (.+)", Storyteller.packing_fails),
    (r"consumer (\d+) cannot be created: (.+)", Storyteller.creation_fails),
    (r"consumer (\d+) has an incident: (.+)", Storyteller.incident),
    (r"the process of consumer (\d+) is gone", Storyteller.ended),
    (r"consumer (\d+) is deleted", Storyteller.deleted),
    (r"the same message comes again", Storyteller.again),
    (r"the broker fences us", Storyteller.leadership_lost),
    (r"the broker says that we lead", Storyteller.leadership_confirmed),
    (
        r"the new deployment (?:works|cannot work: (.+)|is not tried: (.+))",
        Storyteller.deployment_tried,
    ),
    (r"request (\S+): (\w+)(?: (.+))?", Storyteller.request),
    (r"consumer (\d+) reports(?: ([^,]*))?(?:, (.+))?", Storyteller.reports),
    (r"consumer (\d+) started (.+)", Storyteller.started),
    (r"consumer (\d+) stopped ([^,]+)(?:, (\w+))?", Storyteller.stopped),
    (r"consumer (\d+) answers (.+)", Storyteller.answers),
    (r"consumer (\d+) refuses ([^,]+), (\w+)", Storyteller.refuses),
    (r"consumer (\d+) has obeyed epoch (\d+)", Storyteller.obeyed_another),
]


def after(*lines: str) -> Storyteller:
    """A controller to whom all of this has happened."""
    teller = Storyteller()
    for line in lines:
        teller.tell(line)
    return teller


TWO_CONSUMERS = (
    "a controller starts with epoch 1",
    "deployed:",
    "deployed:",
    "speeds orders-0=40 orders-1=40 orders-2=40",
    "tick +500",
    "packed 1: orders-0 orders-1; 2: orders-2",
    "consumer 1 reports",
    "consumer 2 reports",
    "consumer 1 started orders-0@1.1 orders-1@1.2",
    "consumer 2 started orders-2@1.3",
)


SECOND_FALLS_SILENT = (
    "the controller hears itself for 7000 ms",
    "consumer 1 reports orders-0@1.1 orders-1@1.2",
    "the controller hears itself for 1000 ms",
)


def replayed(text: str) -> str:
    """The story with what the machine really does under each input."""
    teller = Storyteller()
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("  "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            lines += teller.tell(line)
    return "\n".join(lines) + "\n"
