"""Decides which Deployments to repair and which incidents to report. Pure.

It compares the wanted consumers (created or found by us, and not yet deleted), the previous
observation and the present one. A Deployment that is being deleted is not repaired; it is made
again when it is gone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from penstock.deployment.kubernetes.core.status import (
    Object,
    Trouble,
    current_pod,
    is_ending,
    last_end,
    restarts_of,
    trouble_of,
)
from penstock.model import ConsumerId


class Repair(StrEnum):
    MAKE_AGAIN = "make again"
    SCALE_TO_ONE = "scale to one"


@dataclass(frozen=True, slots=True)
class ObservedConsumer:
    """One consumer at the last inspection: enough to see what has changed."""

    pod_uid: str = ""
    restarts: int = 0
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class PodIncident:
    """An incident of a consumer; `reason` becomes the reason of a Kubernetes Event."""

    consumer: ConsumerId
    reason: str
    explanation: str
    pod: str = ""
    is_restart: bool = False
    # Its process is not running at the moment.
    is_down: bool = False


@dataclass(frozen=True, slots=True)
class Inspection:
    observed: Mapping[ConsumerId, ObservedConsumer]
    repairs: Mapping[ConsumerId, Repair]
    incidents: Sequence[PodIncident] = field(default_factory=tuple)


def inspect_consumers(
    wanted: Sequence[ConsumerId],
    deployments: Mapping[ConsumerId, Object],
    pods: Mapping[ConsumerId, Sequence[Object]],
    before: Mapping[ConsumerId, ObservedConsumer],
    now_unix_s: float,
) -> Inspection:
    observed: dict[ConsumerId, ObservedConsumer] = {}
    repairs: dict[ConsumerId, Repair] = {}
    incidents: list[PodIncident] = []
    for consumer in sorted(wanted):
        deployment = deployments.get(consumer)
        if deployment is None:
            repairs[consumer] = Repair.MAKE_AGAIN
            continue
        if not is_ending(deployment) and ((deployment.get("spec") or {}).get("replicas", 1) != 1):
            repairs[consumer] = Repair.SCALE_TO_ONE
        known = before.get(consumer)
        own = _pods_to_follow(known, pods.get(consumer, ()))
        observed[consumer] = _observed(known or ObservedConsumer(), deployment, own, now_unix_s)
        # Restarts before the first inspection are not reported; present trouble is.
        since = known or ObservedConsumer(observed[consumer].pod_uid, observed[consumer].restarts)
        incidents += _incidents_since(consumer, since, observed[consumer], own)
    return Inspection(observed, repairs, tuple(incidents))


def _pods_to_follow(known: ObservedConsumer | None, pods: Sequence[Object]) -> Sequence[Object]:
    """The known pod while it exists, so that a second pod beside it is not a replacement."""
    same = [pod for pod in pods if known is not None and pod["metadata"]["uid"] == known.pod_uid]
    return same if current_pod(same) is not None else pods


def _observed(
    known: ObservedConsumer, deployment: Object, pods: Sequence[Object], now_unix_s: float
) -> ObservedConsumer:
    pod = current_pod(pods)
    trouble = trouble_of(deployment, pods, now_unix_s)
    if pod is None:
        return ObservedConsumer(known.pod_uid, known.restarts, trouble)
    uid = pod["metadata"]["uid"]
    if trouble is not None and uid == known.pod_uid:
        # While it is down the old count stays: the restart is reported when it is up again.
        return ObservedConsumer(uid, known.restarts, trouble)
    return ObservedConsumer(uid, restarts_of(pod), trouble)


def _incidents_since(
    consumer: ConsumerId, known: ObservedConsumer, now: ObservedConsumer, pods: Sequence[Object]
) -> list[PodIncident]:
    incidents: list[PodIncident] = []
    pod = current_pod(pods)
    name = "" if pod is None else pod["metadata"]["name"]
    if pod is not None and known.pod_uid and known.pod_uid != now.pod_uid:
        explanation = f"its pod is gone; {name} was started again in its place"
        incidents.append(PodIncident(consumer, "PodReplaced", explanation, name))
    elif pod is not None and now.restarts > known.restarts and now.trouble is None:
        explanation = f"it {last_end(pod)} and was started again ({now.restarts})"
        incidents.append(PodIncident(consumer, "Restarted", explanation, name, is_restart=True))
    trouble = now.trouble
    is_new = trouble is not None and (
        known.trouble is None or known.trouble.reason != trouble.reason
    )
    # An end is reported when the pod is back, or when Kubernetes delays the restart.
    if trouble is not None and is_new and trouble.reason not in {"Ended", "Ending"}:
        incidents.append(
            PodIncident(consumer, trouble.reason, trouble.explanation, name, is_down=True)
        )
    return incidents
