"""The condition on a consumer's Deployment: whether it runs, and if not, why. Pure.

    kubectl wait --for=condition=penstock.io/Running deployment/GROUP-consumer-3

Kubernetes keeps foreign conditions beside its own. A condition describes the present; Events
describe what happened.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.deployment.kubernetes.core.status import Object, Trouble

RUNNING = "penstock.io/Running"


@dataclass(frozen=True, slots=True)
class Condition:
    status: str
    reason: str
    message: str


def condition_of(deployment: Object, trouble: Trouble | None) -> Condition:
    """The condition that the Deployment should have."""
    if trouble is not None:
        return Condition("False", trouble.reason, trouble.explanation)
    if (deployment.get("status") or {}).get("readyReplicas"):
        return Condition("True", "Running", "its pod is ready")
    return Condition("Unknown", "Starting", "its pod is not ready yet")


def shown_condition(deployment: Object) -> Condition | None:
    """The condition that the Deployment has; None while it has none of ours."""
    found = _ours(deployment)
    if found is None:
        return None
    return Condition(found["status"], found.get("reason", ""), found.get("message", ""))


def condition_patch(deployment: Object, condition: Condition, at: datetime) -> dict[str, Any]:
    """Changes only our condition: Kubernetes merges conditions by type."""
    before = _ours(deployment) or {}
    now = moment_text(at)
    is_same_status = before.get("status") == condition.status
    since = before.get("lastTransitionTime", now) if is_same_status else now
    entry = {
        "type": RUNNING,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastUpdateTime": now,
        "lastTransitionTime": since,
    }
    # With the uid, the patch is refused if the Deployment was replaced by one of the same name.
    return {"metadata": {"uid": deployment["metadata"]["uid"]}, "status": {"conditions": [entry]}}


def moment_text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _ours(deployment: Object) -> Object | None:
    conditions = (deployment.get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one.get("type") == RUNNING), None)
