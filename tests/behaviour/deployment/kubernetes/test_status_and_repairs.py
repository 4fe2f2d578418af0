"""What objects mean, which repairs they need, and which incidents are reported."""

from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.deployment import DeploymentState
from penstock.deployment.kubernetes.core.conditions import (
    Condition,
    condition_of,
    condition_patch,
    shown_condition,
)
from penstock.deployment.kubernetes.core.refusals import ApiAnswer, message_of
from penstock.deployment.kubernetes.core.repairs import ObservedConsumer, Repair, inspect_consumers
from penstock.deployment.kubernetes.core.status import (
    Trouble,
    consumer_of_object,
    deployed,
    trouble_of,
)
from penstock.model import ConsumerId

ONE, TWO = ConsumerId(1), ConsumerId(2)
NOW_S = 1_800_000_000.0


def deployment(number: int = 1, **changes: Any) -> dict[str, Any]:
    metadata = {
        "name": f"g-consumer-{number}",
        "uid": f"d{number}",
        "labels": {"penstock.io/consumer": str(number)},
        "annotations": {"penstock.io/template-version": "2"},
        **changes.pop("metadata", {}),
    }
    return {"metadata": metadata, "spec": {"replicas": 1, **changes}, "status": {}}


def pod(name: str = "p1", container: Any = None, **status: Any) -> dict[str, Any]:
    state = {"name": "consumer", "restartCount": 0, "state": {"running": {}}}
    return {
        "metadata": {"name": name, "uid": f"u-{name}", "creationTimestamp": f"2026-01-01-{name}"},
        "status": {"phase": "Running", "containerStatuses": [{**state, **(container or {})}]}
        | status,
    }


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, "message": message}}, **more}


def unscheduled(since: str) -> dict[str, Any]:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes\n are available",
        "lastTransitionTime": since,
    }
    return pod(conditions=[condition], containerStatuses=[], phase="Pending")


@pytest.mark.parametrize(
    ("pods", "state", "explanation"),
    [
        ([pod()], DeploymentState.RUNNING, ""),
        ([], DeploymentState.RUNNING, ""),
        ([pod(container=waiting("ContainerCreating"))], DeploymentState.RUNNING, ""),
        (
            [pod(container=waiting("ErrImagePull", "no such image"))],
            DeploymentState.FAILED,
            "ImageNotPulled: no such image",
        ),
        (
            [pod(container=waiting("ImagePullBackOff", "back-off"))],
            DeploymentState.FAILED,
            "ImageNotPulled: back-off",
        ),
        (
            [pod(container=waiting("CreateContainerConfigError", "no secret"))],
            DeploymentState.FAILED,
            "CreateContainerConfigError: no secret",
        ),
        (
            [pod(container={"state": {"terminated": {"exitCode": 3, "reason": "Error"}}})],
            DeploymentState.RESTARTING,
            "Ended: it ended with code 3",
        ),
        (
            [
                pod(
                    container=waiting(
                        "CrashLoopBackOff",
                        restartCount=6,
                        lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
                    )
                )
            ],
            DeploymentState.FAILED,
            "CrashLoopBackOff: it ended with code 137 (OOMKilled), 6 restarts so far",
        ),
        (
            [unscheduled("2026-01-01T00:00:00Z")],
            DeploymentState.FAILED,
            "Unschedulable: 0/3 nodes are available",
        ),
        (
            [pod(phase="Failed", reason="Evicted", message="out of disk", containerStatuses=[])],
            DeploymentState.RESTARTING,
            "Evicted: out of disk",
        ),
    ],
)
def test_state_and_reason_are_found(
    pods: list[Any], state: DeploymentState, explanation: str
) -> None:
    """The state and the reason come from where Kubernetes has them."""
    found = deployed(ONE, deployment(), pods, NOW_S)
    assert (found.version, found.state, found.detail) == (2, state, explanation)


def test_a_preparing_container_that_fails_is_the_reason() -> None:
    """A failed init container is the reason; a finished one is not."""
    done = {"name": "prepare", "restartCount": 0, "state": {"terminated": {"exitCode": 0}}}
    failed = {"name": "prepare", "restartCount": 1, "state": {"terminated": {"exitCode": 1}}}
    assert trouble_of(deployment(), [pod(initContainerStatuses=[done])], NOW_S) is None
    found = trouble_of(deployment(), [pod(initContainerStatuses=[failed])], NOW_S)
    assert found is not None
    assert (found.reason, found.explanation) == ("PreparationFailed", "prepare ended with code 1")


def test_a_new_pod_may_wait_a_moment_for_its_volume() -> None:
    """An unscheduled pod is normal at first, and a problem after SCHEDULING_S."""
    one = unscheduled("2027-01-15T08:00:00Z")  # this moment
    assert trouble_of(deployment(), [one], NOW_S) is None
    assert trouble_of(deployment(), [one], NOW_S + 4) is None
    assert trouble_of(deployment(), [one], NOW_S + 6) is not None


def test_a_refused_pod_is_explained_by_the_deployment() -> None:
    """Without a pod, the Deployment's condition gives the reason, such as a full quota."""
    made = deployment()
    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": "exceeded quota",
    }
    made["status"] = {"conditions": [failure]}
    found = deployed(ONE, made, [], NOW_S)
    assert (found.state, found.detail) == (DeploymentState.FAILED, "FailedCreate: exceeded quota")


@pytest.mark.parametrize(
    ("pods", "is_starting"),
    [
        ([], True),
        ([unscheduled("2026-01-01T00:00:00Z")], True),
        ([pod(container=waiting("ContainerCreating"), phase="Pending")], True),
        ([pod(container=waiting("ErrImagePull", "no such image"), phase="Pending")], False),
        ([pod(container=waiting("ContainerCreating", restartCount=1), phase="Pending")], False),
        ([pod()], False),
        ([pod(phase="Failed", containerStatuses=[])], False),
    ],
)
def test_what_never_ran_and_was_not_refused_still_starts(
    pods: list[Any], is_starting: bool
) -> None:
    """A new node and a large image take minutes; an image that is not there never comes."""
    assert deployed(ONE, deployment(), pods, NOW_S).is_starting is is_starting


def test_a_refused_pod_does_not_start() -> None:
    """A quota that is full does not empty by waiting."""
    made = deployment()
    made["status"] = {"conditions": [{"type": "ReplicaFailure", "status": "True"}]}
    assert not deployed(ONE, made, [], NOW_S).is_starting


def test_one_that_is_being_deleted_is_still_there() -> None:
    """A Deployment that is being deleted is still listed."""
    made = deployment(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert deployed(ONE, made, [], NOW_S).detail == "Ending: it is being deleted"


def test_a_damaged_version_is_zero() -> None:
    """A damaged version counts as 0, so that a roll-out replaces it."""
    made = deployment(metadata={"annotations": {"penstock.io/template-version": "new"}})
    assert deployed(ONE, made, [], NOW_S).version == 0


def test_what_is_missing_is_made_again_and_what_was_scaled_is_scaled_back() -> None:
    """Wanted Deployments are recreated or scaled to one, unless they are being deleted."""
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    found = inspect_consumers(
        [ConsumerId(n) for n in (1, 2, 3, 4)],
        {
            ONE: deployment(1),
            TWO: deployment(2, replicas=0),
            ConsumerId(3): deployment(3, metadata=ending, replicas=0),
            ConsumerId(9): deployment(9, replicas=5),
        },
        {},
        {},
        NOW_S,
    )
    assert found.repairs == {TWO: Repair.SCALE_TO_ONE, ConsumerId(4): Repair.MAKE_AGAIN}


def incidents_of(
    before: ObservedConsumer | None, pods: list[Any], now_s: float = NOW_S
) -> tuple[list[str], ObservedConsumer]:
    given = {} if before is None else {ONE: before}
    found = inspect_consumers([ONE], {ONE: deployment()}, {ONE: pods}, given, now_s)
    return [f"{one.reason}: {one.explanation}" for one in found.incidents], found.observed[ONE]


def test_a_restart_is_reported_once_when_it_is_up_again() -> None:
    """A restart is reported once, when the pod is up again, and not for earlier ones."""
    ended = {"state": {"terminated": {"exitCode": 137}}, "restartCount": 0}
    up = {"lastState": {"terminated": {"exitCode": 137}}, "restartCount": 1}
    done = {"name": "prepare", "restartCount": 3, "state": {"terminated": {"exitCode": 0}}}
    nothing, observed = incidents_of(ObservedConsumer(), [pod(initContainerStatuses=[done])])
    assert nothing == []
    nothing, observed = incidents_of(observed, [pod(container=ended, initContainerStatuses=[done])])
    assert nothing == []
    explanation, observed = incidents_of(
        observed, [pod(container=up, initContainerStatuses=[done])]
    )
    assert explanation == ["Restarted: it ended with code 137 and was started again (1)"]
    assert incidents_of(observed, [pod(container=up)])[0] == []
    assert incidents_of(None, [pod(container=up)])[0] == []


def test_a_restart_counted_while_down_is_still_reported() -> None:
    """A restart that was counted while the pod was down is still reported."""
    held = waiting("CrashLoopBackOff", restartCount=1)
    explanation, observed = incidents_of(ObservedConsumer("u-p1", 0), [pod(container=held)])
    assert [one.partition(":")[0] for one in explanation] == ["CrashLoopBackOff"]
    explanation, _ = incidents_of(observed, [pod(container={"restartCount": 2})])
    assert [one.partition(":")[0] for one in explanation] == ["Restarted"]


def test_a_replaced_pod_is_reported() -> None:
    """A new pod in place of the known one is reported."""
    explanation, _ = incidents_of(ObservedConsumer("u-p0", 4), [pod("p1")])
    assert explanation == ["PodReplaced: its pod is gone; p1 was started again in its place"]


def test_a_pod_beside_the_known_one_replaces_nothing_until_that_is_gone() -> None:
    """A second pod beside the known one is no replacement until the known one is gone."""
    known = ObservedConsumer(pod_uid="u-p1")
    beside = [pod("p1"), pod("p2"), pod("p3")]
    scaled = inspect_consumers(
        [ONE], {ONE: deployment(replicas=3)}, {ONE: beside}, {ONE: known}, NOW_S
    )
    assert scaled.incidents == ()
    assert scaled.observed == {ONE: known}
    beside[0]["metadata"]["deletionTimestamp"] = "2026-01-01"
    (incident,) = inspect_consumers(
        [ONE], {ONE: deployment()}, {ONE: beside}, scaled.observed, NOW_S
    ).incidents
    assert incident.explanation == "its pod is gone; p3 was started again in its place"


def test_trouble_is_reported_when_it_begins_and_when_it_changes() -> None:
    """A problem is reported once for each reason."""
    explanation, observed = incidents_of(
        ObservedConsumer(), [pod(container=waiting("ErrImagePull", "no such image"))]
    )
    assert explanation == ["ImageNotPulled: no such image"]
    explanation, observed = incidents_of(
        observed, [pod(container=waiting("ImagePullBackOff", "back-off"))]
    )
    assert explanation == []
    explanation, observed = incidents_of(
        observed, [pod(container=waiting("CreateContainerError", "bad"))]
    )
    assert explanation == ["CreateContainerError: bad"]
    explanation, observed = incidents_of(observed, [pod()])
    assert explanation == []
    assert observed.trouble is None


def test_a_consumer_is_identified_by_its_label() -> None:
    """The label names the consumer; an object without labels has none."""
    assert consumer_of_object(deployment(7)) == 7
    assert consumer_of_object({"metadata": {"name": "x"}}) is None


def test_only_a_failure_to_make_pods_is_one() -> None:
    """Only ReplicaFailure is a problem of a Deployment without pods."""
    conditions = [{"type": "Progressing", "status": "True", "reason": "NewReplicaSetCreated"}]
    without = {**deployment(), "status": {"conditions": conditions}}
    assert trouble_of(without, [], NOW_S) is None


def test_a_time_that_cannot_be_read_is_long_ago() -> None:
    """An unreadable time counts as long ago, so that an unscheduled pod is reported."""
    found = trouble_of(deployment(), [unscheduled("yesterday")], NOW_S)
    assert found is not None
    assert found.reason == "Unschedulable"


@pytest.mark.parametrize("body", [b"<html>bad gateway</html>", b"[]", b""])
def test_an_answer_that_is_not_the_api_servers_own(body: bytes) -> None:
    """A foreign answer is reported by its status code, without its text."""
    assert message_of(ApiAnswer(502, body)) == "502."


def shown(deployment_before: dict[str, Any], condition: Condition, at: datetime) -> dict[str, Any]:
    """The Deployment after an API server has applied the patch."""
    patch = condition_patch(deployment_before, condition, at)
    assert patch["metadata"] == {"uid": deployment_before["metadata"]["uid"]}
    return {**deployment_before, "status": {**deployment_before["status"], **patch["status"]}}


def test_the_condition_shows_whether_it_runs() -> None:
    """The condition is starting, running or a problem; its time is the last change of status."""
    new = deployment()
    assert shown_condition(new) is None
    assert condition_of(new, None).status == "Unknown"
    ready = {**new, "status": {"readyReplicas": 1, "conditions": [{"type": "Available"}]}}
    assert shown_condition(ready) is None
    running = condition_of(ready, None)
    assert running.status == "True"
    trouble = Trouble("OOMKilled", "it ended", DeploymentState.RESTARTING)
    broken = condition_of(ready, trouble)
    assert broken == Condition("False", "OOMKilled", "it ended")
    first, second, third = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3))
    then = shown(ready, broken, first)
    assert shown_condition(then) == broken
    worse = Condition("False", "CrashLoopBackOff", "it keeps ending")
    (entry,) = shown(then, worse, second)["status"]["conditions"]
    assert entry["type"] == "penstock.io/Running"
    assert entry["lastUpdateTime"] == "2026-01-02T00:00:00Z"
    assert entry["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    (entry,) = shown(shown(then, worse, second), running, third)["status"]["conditions"]
    assert entry["lastTransitionTime"] == "2026-01-03T00:00:00Z"
