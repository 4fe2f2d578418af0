"""The Kubernetes back-end for the contract test, with the shipped role's rights."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kit.kubernetes.kubernetes_cluster import Cluster, role_rules, until
from penstock.deployment import DeploymentBackend, StillEndingError
from penstock.deployment.kubernetes import KubernetesDeployment
from penstock.deployment.kubernetes.core.manifests import PodPlan
from penstock.deployment.kubernetes.core.names import CONSUMER_LABEL
from penstock.deployment.kubernetes.core.refusals import Right
from penstock.deployment.kubernetes.process.api import Api
from penstock.model import ConsumerId
from penstock.settings.sections import KubernetesSettings

# The base image of the test cluster; simulated pods run nothing.
IMAGE = "localhost/python:1"
GROUP = "bench"


def is_deleted(backend: DeploymentBackend, consumer: ConsumerId) -> bool:
    """Delete it, as the controller does; False while it is still ending."""
    try:
        backend.delete(consumer)
    except StillEndingError:
        return False
    return True


class SimulatedBench:
    """A back-end on simulated pods, whose status the test sets in place of a kubelet."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        on_call: Callable[[Right], None] = lambda _: None,
        host: str | None = None,
        rules: Sequence[Mapping[str, Any]] | None = None,
        **changes: Any,
    ) -> None:
        self.cluster = cluster
        self.namespace = cluster.new_namespace()
        self._on_call = on_call
        cluster.bind(self.namespace, role_rules() if rules is None else rules)
        self._access = cluster.access_with(cluster.token(self.namespace), self.namespace, host=host)
        settings = {"image": IMAGE, "image_pull_policy": "Never", "grace_period": "5s", **changes}
        self.plan = PodPlan(
            group=GROUP,
            settings=KubernetesSettings.model_validate(settings),
            pod_template=self.pod_template(),
        )
        self._made: list[KubernetesDeployment] = []
        self.backend = self.another()

    def pod_template(self) -> Mapping[str, Any]:
        return {}

    def another(self) -> KubernetesDeployment:
        made = KubernetesDeployment(Api(self._access, on_call=self._on_call), self.plan).start()
        self._made.append(made)
        return made

    def returned(self) -> DeploymentBackend:
        return self.another()

    def pods_of(self, consumer: ConsumerId) -> list[Any]:
        pods = self.cluster.items(self.namespace, "pods")
        number = str(int(consumer))
        return [one for one in pods if one["metadata"]["labels"].get(CONSUMER_LABEL) == number]

    def running_pod(self, consumer: ConsumerId) -> Any:
        def found() -> Any:
            staying = [one for one in self.pods_of(consumer) if not _is_ending(one)]
            pods = [one for one in staying if _is_running(one)]
            return pods[0] if pods else None

        return until(found, f"a pod of consumer {consumer} runs", 60)

    def is_deleted(self, consumer: ConsumerId) -> bool:
        return is_deleted(self.backend, consumer)

    def kill(self, consumer: ConsumerId) -> None:
        """End its container and restart it a moment later, as a kubelet does."""
        pod = self.running_pod(consumer)
        name = pod["metadata"]["name"]
        ended = {"terminated": {"exitCode": 137, "reason": "Error"}}
        self.set_container(name, {"state": ended, "ready": False, "started": False})
        until(lambda: self._knows_its_end(name), "the watch tells")

        def start_again() -> None:
            time.sleep(0.5)
            running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
            self.set_container(
                name, {"state": running, "lastState": ended, "restartCount": 1, "ready": True}
            )

        threading.Thread(target=start_again, daemon=True).start()

    def _knows_its_end(self, pod: str) -> bool:
        for one in self.backend._pods.objects():
            for container in one["status"].get("containerStatuses") or []:
                if one["metadata"]["name"] == pod and "terminated" in container["state"]:
                    return True
        return False

    def set_container(self, pod: str, status: Mapping[str, Any]) -> None:
        base = {
            "name": "consumer",
            "image": IMAGE,
            "imageID": "",
            "restartCount": 0,
            "ready": False,
            "lastState": {},
        }
        self.cluster.patch_pod_status(
            self.namespace, pod, {"containerStatuses": [{**base, **status}]}
        )

    def close(self) -> None:
        for one in self._made:
            one.close()
        self.cluster.forget_namespace(self.namespace)


def _is_ending(pod: Any) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _is_running(pod: Any) -> bool:
    statuses = pod["status"].get("containerStatuses") or []
    return bool(statuses) and all("running" in one["state"] for one in statuses)
