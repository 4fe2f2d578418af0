"""Decides from the objects of one consumer whether it runs, and if not, why. Pure.

Kubernetes has the reason in several places: a pod's condition (it cannot be scheduled), a
container's waiting state (its image cannot be pulled, it keeps ending), a container's last end, and
a Deployment's condition (its pod was refused, for instance by a quota). The first one found counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.deployment.interface import FAILED_AFTER_RESTARTS, DeployedConsumer, DeploymentState
from penstock.deployment.kubernetes.core.names import VERSION_ANNOTATION, consumer_of
from penstock.model import ConsumerId
from penstock.model.sentences import cut_at_word

Object = Mapping[str, Any]
# Every pod waits for these at its start.
_STARTING = frozenset({"", "ContainerCreating", "PodInitializing"})
_ENDED_AND_WAITING = frozenset({"CrashLoopBackOff"})
_NOT_PULLED = frozenset({"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull"})
# A new pod cannot be scheduled until its volume exists; that is normal for this long.
SCHEDULING_S = 5.0
_MESSAGE_CHARACTERS_MAX = 300


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a consumer does not run: a reason in the form of Kubernetes, and a sentence."""

    reason: str
    explanation: str
    state: DeploymentState


def labels_of(one: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = one["metadata"].get("labels") or {}
    return found


def consumer_of_object(one: Object) -> ConsumerId | None:
    return consumer_of(labels_of(one))


def version_of(deployment: Object) -> int:
    text = (deployment["metadata"].get("annotations") or {}).get(VERSION_ANNOTATION, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def is_ending(one: Object) -> bool:
    return bool(one["metadata"].get("deletionTimestamp"))


def current_pod(pods: Sequence[Object]) -> Object | None:
    """The newest pod that is not being deleted; ties broken by name."""
    staying = [pod for pod in pods if not is_ending(pod)]
    return max(
        staying,
        key=lambda pod: (pod["metadata"].get("creationTimestamp", ""), pod["metadata"]["name"]),
        default=None,
    )


def restarts_of(pod: Object | None) -> int:
    """Restarts of the main containers; init containers are meant to end."""
    return 0 if pod is None else sum(one.get("restartCount", 0) for one in _lasting(pod))


def deployed(
    consumer: ConsumerId, deployment: Object, pods: Sequence[Object], now_unix_s: float
) -> DeployedConsumer:
    """The consumer in the form of the deployment interface."""
    trouble = trouble_of(deployment, pods, now_unix_s)
    state = DeploymentState.RUNNING if trouble is None else trouble.state
    explanation = "" if trouble is None else f"{trouble.reason}: {trouble.explanation}"
    pod = current_pod(pods)
    return DeployedConsumer(
        consumer,
        version_of(deployment),
        state,
        restarts_of(pod),
        explanation,
        is_starting=_is_starting(deployment, pod),
    )


def _is_starting(deployment: Object, pod: Object | None) -> bool:
    """Whether it has never run and may still come up: no node yet, or its image is not here yet.

    A node that is added for it, or a large image, takes minutes; what was refused is not waited
    for.
    """
    if pod is None:
        return _without_pod(deployment) is None
    has_run = restarts_of(pod) > 0 or (pod.get("status") or {}).get("phase") != "Pending"
    return not has_run and _in_container(pod) is None


def trouble_of(deployment: Object, pods: Sequence[Object], now_unix_s: float) -> Trouble | None:
    """None while the consumer runs or starts normally."""
    if is_ending(deployment):
        return Trouble("Ending", "it is being deleted", DeploymentState.RUNNING)
    pod = current_pod(pods)
    if pod is None:
        return _without_pod(deployment)
    return _unscheduled(pod, now_unix_s) or _in_container(pod) or _pod_failed(pod)


def _without_pod(deployment: Object) -> Trouble | None:
    conditions = (deployment.get("status") or {}).get("conditions") or []
    for one in conditions:
        if one.get("type") == "ReplicaFailure" and one.get("status") == "True":
            explanation = _short(one.get("message", ""))
            return Trouble(one.get("reason", "ReplicaFailure"), explanation, DeploymentState.FAILED)
    return None


def _unscheduled(pod: Object, now_unix_s: float) -> Trouble | None:
    for one in (pod.get("status") or {}).get("conditions") or []:
        is_refused = one.get("type") == "PodScheduled" and one.get("status") == "False"
        if is_refused and now_unix_s - _moment(one) >= SCHEDULING_S:
            explanation = _short(one.get("message", ""))
            return Trouble(one.get("reason", "Unschedulable"), explanation, DeploymentState.FAILED)
    return None


def _in_container(pod: Object) -> Trouble | None:
    for container in _containers(pod):
        state = container.get("state") or {}
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting is not None and waiting.get("reason", "") not in _STARTING:
            return _waiting(container, waiting)
        if ended is not None and not container.get("is_preparation"):
            return Trouble("Ended", f"it {_end(ended)}", _after(container))
        if ended is not None and ended.get("exitCode"):
            return Trouble(
                "PreparationFailed", f"{container['name']} {_end(ended)}", _after(container)
            )
    return None


def _waiting(container: Object, waiting: Object) -> Trouble:
    reason = waiting.get("reason", "")
    if reason in _ENDED_AND_WAITING:
        last = (container.get("lastState") or {}).get("terminated") or {}
        explanation = f"it {_end(last)}, {container.get('restartCount', 0)} restarts so far"
        return Trouble(reason, explanation, _after(container))
    explanation = _short(waiting.get("message", ""))
    if reason in _NOT_PULLED:
        # Kubernetes alternates between two reasons for the same problem.
        return Trouble("ImageNotPulled", explanation, DeploymentState.FAILED)
    return Trouble(reason, explanation, DeploymentState.FAILED)


def _after(container: Object) -> DeploymentState:
    often = container.get("restartCount", 0) >= FAILED_AFTER_RESTARTS
    return DeploymentState.FAILED if often else DeploymentState.RESTARTING


def _end(ended: Object) -> str:
    reason = ended.get("reason", "")
    code = ended.get("exitCode", "unknown")
    cause = f" ({reason})" if reason not in {"", "Error", "Completed"} else ""
    return f"ended with code {code}{cause}"


def last_end(pod: Object) -> str:
    """How its container ended the last time, as a phrase."""
    for container in _lasting(pod):
        ended = (container.get("lastState") or {}).get("terminated")
        ended = ended or (container.get("state") or {}).get("terminated")
        if ended:
            return _end(ended)
    return "ended"


def _pod_failed(pod: Object) -> Trouble | None:
    status = pod.get("status") or {}
    if status.get("phase") != "Failed":
        return None
    explanation = _short(status.get("message", "")) or "the pod failed"
    return Trouble(status.get("reason", "Failed"), explanation, DeploymentState.RESTARTING)


def _containers(pod: Object) -> list[Object]:
    status = pod.get("status") or {}
    first = [{**one, "is_preparation": True} for one in status.get("initContainerStatuses") or []]
    return [*first, *(status.get("containerStatuses") or [])]


def _lasting(pod: Object) -> list[Object]:
    return [one for one in _containers(pod) if not one.get("is_preparation")]


def _moment(condition: Object) -> float:
    """When the condition last changed; 0 when that cannot be read."""
    try:
        return datetime.fromisoformat(condition.get("lastTransitionTime") or "").timestamp()
    except ValueError:
        return 0.0


def _short(message: str) -> str:
    return cut_at_word(" ".join(message.split()), _MESSAGE_CHARACTERS_MAX)
