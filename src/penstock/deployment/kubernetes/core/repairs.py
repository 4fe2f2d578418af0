"""What to do about what is seen: repairs, and what people should hear of. Pure.

Compared are what we want (every consumer that we created or found, until we delete it), what was
seen the last time, and what is seen now. Nothing is repaired that is on its way out: it is made
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
class Seen:
    """One consumer as it was at the last look: enough to know what has changed."""

    pod_uid: str = ""
    restarts: int = 0
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened to a consumer; `reason` is the word for a Kubernetes Event."""

    consumer: ConsumerId
    reason: str
    explanation: str
    pod: str = ""
    is_restart: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    seen: Mapping[ConsumerId, Seen]
    repairs: Mapping[ConsumerId, Repair]
    happenings: Sequence[Happening] = field(default_factory=tuple)


def look(
    wanted: Sequence[ConsumerId],
    deployments: Mapping[ConsumerId, Object],
    pods: Mapping[ConsumerId, Sequence[Object]],
    before: Mapping[ConsumerId, Seen],
    now_unix_s: float,
) -> Look:
    seen: dict[ConsumerId, Seen] = {}
    repairs: dict[ConsumerId, Repair] = {}
    happenings: list[Happening] = []
    for consumer in sorted(wanted):
        deployment = deployments.get(consumer)
        if deployment is None:
            repairs[consumer] = Repair.MAKE_AGAIN
            continue
        if not is_ending(deployment) and (deployment["spec"].get("replicas", 1) != 1):
            repairs[consumer] = Repair.SCALE_TO_ONE
        known = before.get(consumer)
        own = _followed(known, pods.get(consumer, ()))
        seen[consumer] = _seen(known or Seen(), deployment, own, now_unix_s)
        # What was there before our first look is no news; that it is in trouble now is.
        since = known or Seen(seen[consumer].pod_uid, seen[consumer].restarts)
        happenings += _happened(consumer, since, seen[consumer], own)
    return Look(seen, repairs, tuple(happenings))


def _followed(known: Seen | None, pods: Sequence[Object]) -> Sequence[Object]:
    """The pod that we know while it stays: one that somebody put beside it replaces nothing."""
    same = [pod for pod in pods if known is not None and pod["metadata"]["uid"] == known.pod_uid]
    return same if current_pod(same) is not None else pods


def _seen(known: Seen, deployment: Object, pods: Sequence[Object], now_unix_s: float) -> Seen:
    pod = current_pod(pods)
    trouble = trouble_of(deployment, pods, now_unix_s)
    if pod is None:
        return Seen(known.pod_uid, known.restarts, trouble)
    uid = pod["metadata"]["uid"]
    if trouble is not None and uid == known.pod_uid:
        # While it is down the old count stays: the restart is told when it is up again.
        return Seen(uid, known.restarts, trouble)
    return Seen(uid, restarts_of(pod), trouble)


def _happened(
    consumer: ConsumerId, known: Seen, now: Seen, pods: Sequence[Object]
) -> list[Happening]:
    told: list[Happening] = []
    pod = current_pod(pods)
    name = "" if pod is None else pod["metadata"]["name"]
    if pod is not None and known.pod_uid and known.pod_uid != now.pod_uid:
        explanation = f"its pod is gone; {name} was started again in its place"
        told.append(Happening(consumer, "PodReplaced", explanation, name))
    elif pod is not None and now.restarts > known.restarts and now.trouble is None:
        explanation = f"it {last_end(pod)} and was started again ({now.restarts})"
        told.append(Happening(consumer, "Restarted", explanation, name, is_restart=True))
    trouble = now.trouble
    is_new = trouble is not None and (
        known.trouble is None or known.trouble.reason != trouble.reason
    )
    # That it ended is told when it has come back, or when Kubernetes holds it back.
    if trouble is not None and is_new and trouble.reason not in {"Ended", "Ending"}:
        told.append(Happening(consumer, trouble.reason, trouble.explanation, name))
    return told
