"""Stories: what happens to a controller, line by line, and what it does about it.

A story is a text file. A line that starts in the first column is an input; the indented lines under
it are what the controller did: the decisions it explained, the effects, and its new state. Lines
that begin with `#` are for the reader. `make stories` writes the indented
lines again.
"""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

from penstock.controller.core import effects as act
from penstock.controller.core import inputs
from penstock.controller.core.invariants import check_whole
from penstock.controller.core.saved_state import decode_state, encode_state
from penstock.controller.core.settings import ControllerSettings
from penstock.controller.core.state import State
from penstock.controller.core.state_machine import Machine
from penstock.messages import (
    ChangeSettings,
    CommandRefusedEvent,
    ConsumerPhase,
    ConsumerReport,
    Direction,
    FromConsumer,
    Message,
    OwnedPartition,
    Pause,
    RefusalReason,
    RefusedPartition,
    ReportedPartition,
    Resume,
    ServiceAnswer,
    ServiceRequest,
    StartConsumingCommand,
    StartConsumingEvent,
    StartedPartition,
    StateQuery,
    StateQueryResponse,
    StopConsumingCommand,
    StopConsumingEvent,
    StoppedPartition,
    StopReason,
    UpdateDeployments,
)
from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing import Packing


class Storyteller:
    """Feeds the machine with lines and says what it did."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.state: State | None = None
        self.saved: bytes | None = None
        self.settings = ControllerSettings(
            capacity_bytes_per_s=100.0, target_utilisation=1.0, spare_consumers=0, catch_up_ms=0
        )
        self.sequence: dict[int, int] = {}
        self.incarnation: dict[int, int] = {}
        self.last: FromConsumer | None = None
        self._said = 0

    def tell(self, line: str) -> list[str]:
        for pattern, method in _LINES:
            match = re.fullmatch(pattern, line)
            if match is not None:
                return method(self, *match.groups())
        raise ValueError(f"no such line in a story: {line!r}")

    # Outside of the machine

    def configure(self, text: str) -> list[str]:
        values = {name: _value(value) for name, value in _pairs(text)}
        self.settings = dataclasses.replace(self.settings, **values)
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
            outcome = decode_state(self.saved)
            assert isinstance(outcome, State)
            saved = outcome
        self._said = len(saved.history) if saved else 0
        state, effects = Machine().begin(
            controller_epoch=int(epoch), settings=self.settings, now_ms=self.now_ms, saved=saved
        )
        return self._trace(None, state, effects)

    # Inputs

    def give(self, given: inputs.Input) -> list[str]:
        assert self.state is not None, "the controller has not started"
        before = self.state
        state, effects = Machine().step(before, given)
        check_whole(state)
        return self._trace(before, state, effects)

    def tick(self, ms: str) -> list[str]:
        self.now_ms += int(ms)
        return self.give(inputs.Tick(self.now_ms, unix_ms=self.now_ms))

    def listed(self, names: str) -> list[str]:
        found = {}
        for name in names.split():
            consumer, _, version = name.partition("/")
            found[ConsumerId(int(consumer))] = inputs.Deployed(int(version or 0))
        return self.give(inputs.DeploymentsListed(self.now_ms, found))

    def measured(self, text: str) -> list[str]:
        speeds = {
            TopicPartition.parse(name): None if value == "?" else float(value)
            for name, value in _pairs(text)
        }
        return self.give(inputs.SpeedsMeasured(self.now_ms, speeds))

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

    def befallen(self, consumer: str, explanation: str) -> list[str]:
        return self.give(
            inputs.ConsumerIncident(self.now_ms, ConsumerId(int(consumer)), explanation)
        )

    def deleted(self, consumer: str) -> list[str]:
        return self.give(inputs.ConsumerDeleted(self.now_ms, ConsumerId(int(consumer))))

    def leadership_lost(self) -> list[str]:
        return self.give(inputs.LeadershipLost(self.now_ms))

    def request(self, name: str, what: str, text: str | None) -> list[str]:
        values = {key: _value(value) for key, value in _pairs(text or "")}
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
        return self.spoke(self.last)

    def spoke(self, message: FromConsumer) -> list[str]:
        self.last = message
        return self.give(inputs.ConsumerSpoke(self.now_ms, message))

    def reports(self, consumer: str, text: str | None, rest: str | None) -> list[str]:
        extra = {name: _value(value) for name, value in _pairs(rest or "")}
        phase = ConsumerPhase(extra.pop("phase", "running"))
        rows = tuple(ReportedPartition(**row) for row in _rows(text))
        head = self._head(consumer)
        return self.spoke(ConsumerReport(**head, report_number=1, phase=phase, owned=rows, **extra))

    def started(self, consumer: str, text: str) -> list[str]:
        rows = tuple(StartedPartition(**row) for row in _rows(text))
        return self.spoke(StartConsumingEvent(**self._head(consumer), partitions=rows))

    def stopped(self, consumer: str, text: str, reason: str | None) -> list[str]:
        why = StopReason(reason or "commanded")
        rows = tuple(StoppedPartition(**row, reason=why) for row in _rows(text))
        return self.spoke(StopConsumingEvent(**self._head(consumer), partitions=rows))

    def answers(self, consumer: str, text: str) -> list[str]:
        assert self.state is not None
        rows = tuple(OwnedPartition(**row) for row in _rows(text))
        head = self._head(consumer)
        return self.spoke(
            StateQueryResponse(
                **head,
                query_controller_epoch=self.state.controller_epoch,
                query_number=max(1, self.state.queries_sent),
                owned=rows,
            )
        )

    def refuses(self, consumer: str, text: str, reason: str) -> list[str]:
        assert self.state is not None
        rows = tuple(RefusedPartition(**row) for row in _rows(text))
        return self.spoke(
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
        return self.spoke(ConsumerReport(**head, report_number=1, phase=ConsumerPhase.RUNNING))

    # What the machine did

    def _trace(
        self, before: State | None, after: State, effects: tuple[act.Effect, ...]
    ) -> list[str]:
        lines = [f"  {d.code.value}: {d.explanation}" for d in after.history[self._said :]]
        self._said = len(after.history)
        for effect in effects:
            if isinstance(effect, act.SaveState):
                self.saved = encode_state(after)
            lines += _said_effect(effect)
        if before is None or before.phase is not after.phase:
            lines.append(f"  = {after.phase.value}")
        self.state = after
        return lines


def _said_effect(effect: act.Effect) -> list[str]:
    if isinstance(effect, act.Send):
        return [f"  > {_said_message(effect.message)}"]
    say = _SAID.get(type(effect))
    return [] if say is None else [f"  > {say(effect)}"]


def _said_message(message: Message) -> str:
    match message:
        case StartConsumingCommand():
            return f"start at {message.consumer_id}: {_named(message)} (plan {message.plan_number})"
        case StopConsumingCommand():
            return f"stop at {message.consumer_id}: {_named(message)} (plan {message.plan_number})"
        case StateQuery():
            return f"query {message.consumer_id}"
        case ServiceAnswer():
            return f"answer {message.request_id}: {message.outcome.value}"
        case _:
            raise ValueError(f"the controller does not say {message.event_type}")


def _said_pack(effect: act.Pack) -> str:
    speeds = sorted(effect.problem.write_speed_bytes_per_s.items())
    parts = " ".join(f"{partition}={speed:g}" for partition, speed in speeds)
    return f"pack {parts} given {effect.problem.current!r}"


_SAID: dict[type[act.Effect], Callable[[Any], str]] = {
    act.SaveState: lambda _: "save",
    act.ListDeployments: lambda _: "list deployments",
    act.CreateConsumer: lambda e: (
        f"create consumer {e.consumer}" + (f" version {e.version}" if e.version else "")
    ),
    act.DeleteConsumer: lambda e: f"delete consumer {e.consumer}",
    act.SetDeploymentTemplate: lambda e: f"deploy version {e.version} from now on",
    act.Pack: _said_pack,
    act.StepDown: lambda _: "step down",
}


def _named(message: StartConsumingCommand | StopConsumingCommand) -> str:
    return " ".join(f"{row.topic_partition}@{row.epoch}" for row in message.partitions)


def _rows(text: str | None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for word in (text or "").split():
        if word != "nothing":
            name, _, epoch = word.partition("@")
            partition = TopicPartition.parse(name)
            rows.append(
                {"topic": partition.topic, "partition": partition.partition, "epoch": epoch}
            )
    return rows


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (word.partition("=") for word in text.split())]


def _value(text: str) -> Any:
    if text in {"yes", "no"}:
        return text == "yes"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


_LINES: list[tuple[str, Callable[..., list[str]]]] = [
    (r"settings (.+)", Storyteller.configure),
    (r"(\d+) ms pass", Storyteller.wait),
    (r"consumer (\d+) starts again", Storyteller.restart),
    (r"a controller starts with epoch (\d+)( with its state file)?", Storyteller.begin),
    (r"tick \+(\d+)", Storyteller.tick),
    (r"deployed:(.*)", Storyteller.listed),
    (r"speeds (.+)", Storyteller.measured),
    (r"packed (.+)", Storyteller.packed),
    (r"the packer fails: (.+)", Storyteller.packing_fails),
    (r"consumer (\d+) cannot be created: (.+)", Storyteller.creation_fails),
    (r"consumer (\d+) is befallen: (.+)", Storyteller.befallen),
    (r"consumer (\d+) is deleted", Storyteller.deleted),
    (r"the same message comes again", Storyteller.again),
    (r"the broker fences us", Storyteller.leadership_lost),
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
    "8000 ms pass",
    "consumer 1 reports orders-0@1.1 orders-1@1.2",
    "tick +600",
)


def told(text: str) -> str:
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
