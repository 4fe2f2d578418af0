"""A group whose controller and consumers are real pods; Kafka, Spark and monitor run locally.

The lake and the controller's directory are folders of this machine that the pods mount under the
same path, so that tests can read them.
"""

import json
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import yaml

from kit.kubernetes.kubernetes_cluster import CONTROLLER_ACCOUNT, Cluster, role_rules, until
from kit.kubernetes.penstock_image import NAME
from penstock.deployment.kubernetes.core.names import CONSUMER_LABEL, object_name
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.control_topics import make_control_topics
from penstock.laboratory.broker import BrokerPlan, EmbeddedKafka
from penstock.model import ConsumerId
from penstock.pipeline.connect_server import ConnectServer
from penstock.pipeline.warm_up import warm_up
from penstock.processes import start_child, stop
from penstock.settings import Secret, load_settings
from penstock.settings.sections import SparkSettings
from penstock.state_directory import BrokenState, decode_state

GROUP = "pods"
CONTROLLER = "penstock-controller"
SETTINGS_MAP = "penstock-settings"
USER = 10001
SPARK_TOKEN = "of-this-test"  # noqa: S105 -- for a server of the test
TOKEN = {"name": "spark-token", "key": "token"}


class PodsGroup:
    """Has the interface that `kit.group.live_group.LiveGroup` needs."""

    def __init__(self, cluster: Cluster, folder: Path, **changes: Any) -> None:
        self.cluster = cluster
        self._folder = folder
        self._changes = changes
        self.directory = folder / "group"
        self._parts = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._parts.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.close()

    def _start(self) -> None:
        # The pods run as another user, so both must be able to write each other's files.
        before = os.umask(0)
        self._parts.callback(os.umask, before)
        for path in (self._folder, self.directory, self._folder / "lake"):
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o777)
        address = self.cluster.host_address
        kafka = self._parts.enter_context(EmbeddedKafka(BrokerPlan(host=address, heap_mib=512)))
        spark = self._parts.enter_context(
            ConnectServer(
                SparkSettings(insecure=True, token=Secret(SPARK_TOKEN)),
                folder=self._folder / "spark",
                listen_on=self.cluster.host_address,
            )
        )
        warm_up(spark.settings_here, GROUP, SparkSettings().tasks)  # as `penstock spark start` does
        self.namespace = self.cluster.new_namespace()
        self._parts.callback(self.cluster.forget_namespace, self.namespace)
        content = self._settings(kafka.bootstrap_servers, spark.master)
        file = self.settings_file = self._folder / "penstock.yaml"
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        self.settings = load_settings(file, environment={}).settings
        make_control_topics(self.settings)
        monitor = start_child(
            [sys.executable, "-m", "penstock", "monitor", "--settings", str(file)],
            log_file=self._folder / "monitor.log",
        )
        self._parts.callback(stop, monitor, grace_s=10)
        self._make_controller(file.read_text(encoding="utf-8"))
        self._parts.callback(self._remove_all)

    def _settings(self, bootstrap_servers: str, master: str) -> dict[str, Any]:
        content: dict[str, Any] = {
            "kafka": {"bootstrap_servers": bootstrap_servers, "insecure": True},
            "lake": {"root": str(self._folder / "lake"), "group": GROUP},
            "spark": {"master": master, "insecure": True},
            "log": {"format": "json"},
            "controller": {
                "deployment": "kubernetes",
                "directory": str(self.directory),
                "consumers_max": 4,
            },
            "packing": {"capacity": "300kB/s", "scale_down_period": "6s"},
            "consumer": {"batch_period": "500ms", "grace": "10s", "report_period": "1s"},
            "kubernetes": {
                "image": NAME,
                "image_pull_policy": "Never",
                "settings_config_map": SETTINGS_MAP,
                "pod_template": "/etc/penstock/pod-template.yaml",
                "owner": CONTROLLER,
                "grace_period": "15s",
                "cpu_request": "50m",
                "cpu_limit": "2",
                "memory_request": "128Mi",
            },
        }
        for name, value in self._changes.items():
            section, _, option = name.partition("__")
            content[section][option] = value
        return content

    def pod_template(self) -> dict[str, Any]:
        """The lake is a folder of the node; an init container makes the volume writable."""
        prepare = {
            "name": "prepare",
            "image": NAME,
            "imagePullPolicy": "Never",
            "command": ["/bin/busybox", "chmod", "0777", "/state"],
            "securityContext": {"runAsUser": 0, "runAsNonRoot": False},
            "volumeMounts": [{"name": "state", "mountPath": "/state"}],
        }
        lake = {"name": "lake", "mountPath": str(self._folder / "lake")}
        path = {"path": str(self._folder / "lake")}
        token = {"name": "PENSTOCK_SPARK__TOKEN", "valueFrom": {"secretKeyRef": TOKEN}}
        return {
            "spec": {
                "initContainers": [prepare],
                "containers": [{"name": "consumer", "volumeMounts": [lake], "env": [token]}],
                "volumes": [{"name": "lake", "hostPath": path}],
            }
        }

    def _make_controller(self, settings: str) -> None:
        namespace = self.namespace
        self.cluster.bind(namespace, role_rules(remove_volumes=False))
        secret = {"metadata": {"name": TOKEN["name"]}, "stringData": {TOKEN["key"]: SPARK_TOKEN}}
        self.cluster.must("POST", f"/api/v1/namespaces/{namespace}/secrets", secret)
        data = {
            "penstock.yaml": settings,
            "pod-template.yaml": yaml.safe_dump(self.pod_template()),
        }
        self.cluster.must(
            "POST",
            f"/api/v1/namespaces/{namespace}/configmaps",
            {"metadata": {"name": SETTINGS_MAP}, "data": data},
        )
        self.cluster.must(
            "POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", self._controller()
        )

    def _controller(self) -> dict[str, Any]:
        labels = {"app": "penstock-controller"}
        mounts = [
            {"name": "settings", "mountPath": "/etc/penstock"},
            {"name": "group", "mountPath": str(self.directory)},
            {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108 -- a volume of the pod's own
        ]
        container = {
            "name": "controller",
            "image": NAME,
            "imagePullPolicy": "Never",
            "command": ["penstock", "controller", "--settings", "/etc/penstock/penstock.yaml"],
            "env": [{"name": "PENSTOCK_HEALTH_PORT", "value": "8080"}],
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 1},
            "volumeMounts": mounts,
            "securityContext": {"readOnlyRootFilesystem": True, "runAsUser": USER},
        }
        volumes = [
            {"name": "settings", "configMap": {"name": SETTINGS_MAP}},
            {"name": "group", "hostPath": {"path": str(self.directory)}},
            {"name": "scratch", "emptyDir": {}},
        ]
        pod = {
            "serviceAccountName": CONTROLLER_ACCOUNT,
            "terminationGracePeriodSeconds": 10,
            "containers": [container],
            "volumes": volumes,
        }
        return {
            "metadata": {"name": CONTROLLER, "labels": labels},
            "spec": {
                "replicas": 1,
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }

    def _remove_all(self) -> None:
        """Delete the controller, and with it the consumers it owns."""
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{CONTROLLER}"
        self.cluster.ask("DELETE", path)
        until(lambda: not self.pods(), "no pod is left", 60)

    # For tests

    def repair(self) -> list[str]:
        """Nothing to do: Kubernetes repairs."""
        return []

    def pods(self) -> list[Any]:
        return self.cluster.items(self.namespace, "pods")

    def consumer_pod(self, consumer: int) -> Any:
        """Its pod that is not being deleted; None when there is none."""
        staying = [
            one
            for one in self.pods()
            if one["metadata"].get("labels", {}).get(CONSUMER_LABEL) == str(consumer)
            and "deletionTimestamp" not in one["metadata"]
        ]
        return staying[0] if staying else None

    def controller_pod(self) -> Any:
        return next(
            (one for one in self.pods() if one["metadata"]["name"].startswith(CONTROLLER)), None
        )

    def log_of_pod(self, pod: Any, *, previous: bool = False) -> str:
        name = pod["metadata"]["name"]
        query = "?previous=true" if previous else ""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/log{query}"
        return str(self.cluster.ask("GET", path)[1])

    def log_of(self, name: str) -> Path:
        """The controller's log, fetched into a file."""
        file = self._folder / f"{name}.log"
        pod = self.controller_pod()
        if name == "controller" and pod is not None:
            text = self.log_of_pod(pod)
            consumers = [one for one in self.pods() if one is not pod]
            for one in consumers:
                text += f"\n--- {one['metadata']['name']} {json.dumps(one['status'])[:600]}\n"
                text += self.log_of_pod(one)[-1500:]
            file.write_text(text, encoding="utf-8")
        return file

    def delete_pod(self, pod: Any) -> None:
        name = pod["metadata"]["name"]
        self.cluster.must("DELETE", f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    def kill_inside(self, pod: Any) -> None:
        """Kill the penstock process of a pod, which is visible on this machine."""
        killed = 0
        for pid in processes_of_pod(pod["metadata"]["uid"]):
            os.kill(pid, signal.SIGKILL)
            killed += 1
        assert killed, f"no process of {pod['metadata']['name']}"

    def stored_state(self, consumer: int) -> dict[str, Any] | None:
        """The state on the consumer's volume; None when there is none yet."""
        name = object_name(GROUP, ConsumerId(consumer))
        base = f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims/{name}"
        status, claim = self.cluster.ask("GET", base)
        if status != 200 or "volumeName" not in claim["spec"]:
            return None
        volume = self.cluster.must(
            "GET", f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}"
        )
        shown = Path(volume["spec"]["hostPath"]["path"])
        file = self.cluster.volumes / shown.name / "state"
        if not file.is_file():
            return None
        found = decode_state(f"{GROUP}/consumer-{consumer}", file.read_bytes())
        assert not isinstance(found, BrokenState), found
        return found


def made_topic(administration: Administration, name: str, partitions: int) -> str:
    """Create a topic and wait until the broker knows it."""
    administration.create_topic(name, partitions=partitions, replication_factor=1, settings={})
    until(lambda: name in administration.cluster().partition_counts, "the topic is known")
    return name


def processes_of_pod(uid: str) -> list[int]:
    """Processes of our program in a pod, by the pod's cgroup."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            groups = path.read_text(encoding="utf-8")
            command = path.with_name("cmdline").read_bytes()
        except OSError:
            continue
        if uid in groups and b"penstock" in command:
            found.append(int(path.parent.name))
    return sorted(found)
