"""The controller's effects as the lines of a story."""

from collections.abc import Callable
from typing import Any

from penstock.controller.core import effects as act
from penstock.messages import (
    Message,
    ServiceAnswer,
    StartConsumingCommand,
    StateQuery,
    StopConsumingCommand,
)


def said_effect(effect: act.Effect) -> list[str]:
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
    speeds = sorted(effect.problem.load_bytes_per_s.items())
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
    act.RestoreDeploymentTemplate: lambda e: f"deploy as before, as version {e.version}",
    act.TryDeployment: lambda e: f"try the deployment of version {e.version}",
    act.Pack: _said_pack,
    act.AskWhoLeads: lambda _: "ask who leads",
    act.StepDown: lambda _: "step down",
}


def _named(message: StartConsumingCommand | StopConsumingCommand) -> str:
    return " ".join(f"{row.topic_partition}@{row.epoch}" for row in message.partitions)
