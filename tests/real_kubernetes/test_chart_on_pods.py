"""The chart on a real node: its pods run as shipped, with thin consumers.

Kafka, the Spark Connect server and the lake's folder are on this machine; controller, monitor, page
and consumers are pods that Helm and the controller created.
"""

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.kubernetes.helm import CHART, helm_program
from kit.kubernetes.helm import helm as run_helm
from kit.kubernetes.kubernetes_cluster import Cluster, until
from kit.kubernetes.penstock_image import NAME, put_on_node
from kit.kubernetes.pods_group import processes_of_pod
from penstock.controller.process.prefix_holder import holder_of
from penstock.jars import USUAL_SETS, fetch
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka
from penstock.laboratory.broker.properties import BrokerPlan
from penstock.laboratory.load import LoadGenerator, parse_target
from penstock.model import TopicPartition
from penstock.pipeline.connect_server import ConnectServer
from penstock.settings import Secret, Settings, load_settings
from penstock.settings.sections import SparkSettings
from penstock.telemetry import get_logger
from penstock.verification import carried_so_far, verify

pytestmark = [pytest.mark.kubernetes, pytest.mark.kubernetes_long, pytest.mark.timeout(1300)]
NAMESPACE = "chart-on-pods"
PARTITIONS = 4
SPARK_TOKEN = "of-this-test"  # noqa: S105 -- for a server of the test
TOKEN = {"name": "spark-token", "key": "token"}
PAGE_SECRET = "page-token"  # noqa: S105 -- the name of a Secret
PAGE_TOKEN = "of-this-test-0123456789"  # noqa: S105 -- for a page of the test
# Asks the page in its own pod, with the token that the chart gave it.
ASK_PAGE = """python3 -c "
import os, sys, urllib.request
token = 'Bearer ' + os.environ['PENSTOCK_PAGE__TOKEN']
address = 'http://127.0.0.1:8642' + sys.argv[1]
asked = urllib.request.Request(address, headers={'Authorization': token})
print(urllib.request.urlopen(asked).read().decode())
" """
# Shows a pod's user, file system, token and service variables.
LOOK_INSIDE = "id -u; touch /x; ls /var/run/secrets; env | grep -c _SERVICE_HOST"


@contextmanager
def world_writable() -> Iterator[None]:
    """Make new files writable for all, because the pods run as another user."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def writable_volumes(cluster: Cluster) -> Iterator[None]:
    """Keep the test node's volumes writable: they are folders of root without fsGroup support."""
    volumes = cluster.volumes
    is_over = threading.Event()

    def keep_open() -> None:
        while not is_over.wait(0.1):
            for one in volumes.iterdir():
                one.chmod(0o777)

    thread = threading.Thread(target=keep_open)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def values(kafka: EmbeddedKafka, spark: ConnectServer, lake: Path) -> dict[str, Any]:
    repository, _, tag = NAME.rpartition(":")
    volume = {"name": "here", "hostPath": {"path": str(lake)}}
    small = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    return {
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
        "lake": {"persistence": {"enabled": False}},
        "controller": {"resources": small},
        "monitor": {"resources": small},
        "page": {
            "enabled": True,
            "existingSecret": PAGE_SECRET,
            "behindProxy": True,
            "resources": small,
            "extraVolumes": [volume],
            "extraVolumeMounts": [{"name": "here", "mountPath": str(lake), "readOnly": True}],
        },
        "consumer": {
            "resources": small,
            "extraEnv": [{"name": "PENSTOCK_SPARK__TOKEN", "valueFrom": {"secretKeyRef": TOKEN}}],
            "extraVolumes": [volume],
            "extraVolumeMounts": [{"name": "here", "mountPath": str(lake)}],
        },
        "settings": {
            "kafka": {"bootstrap_servers": kafka.bootstrap_servers, "insecure": True},
            "lake": {"root": str(lake)},
            "spark": {"master": spark.master, "insecure": True},
            "packing": {"capacity": "300kB/s"},
            "monitor": {"include": ["orders"]},
        },
    }


def produced(settings: Settings, seconds: float) -> None:
    targets = parse_target("orders=200kB/s", {"orders": PARTITIONS}, seed=1)
    result = LoadGenerator(settings.kafka, list(targets), run_id="chart").run(seconds)
    assert result.records_failed == 0, result.first_failure


class Installed:
    """The installed release, through Helm and kubectl."""

    def __init__(self, helm: Path, cluster: Cluster) -> None:
        self._helm = helm
        self.cluster = cluster

    def helm(self, *arguments: str) -> None:
        place = ("--namespace", NAMESPACE, "--kubeconfig", str(self.cluster.kubeconfig))
        done = run_helm(self._helm, *arguments, *place, timeout_s=200)
        assert done.returncode == 0, f"{done.stderr}\n{self.logs()}"

    def logs(self) -> str:
        """The pods' logs, for the message of a failure."""
        logs = []
        for pod in self.cluster.items(NAMESPACE, "pods"):
            name = pod["metadata"]["name"]
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/log"
            logs.append(f"--- {name}: {str(self.cluster.ask('GET', path)[1])[-800:]}")
        return "\n".join(logs)

    def consumers(self) -> list[Any]:
        return [
            one
            for one in self.cluster.deployments(NAMESPACE)
            if one["metadata"]["labels"]["app.kubernetes.io/component"] == "consumer"
        ]

    def inside(self, pod_of: str, script: str) -> str:
        """What a shell prints there: `deployment/NAME` or `pod/NAME`."""
        kubectl = ["kubectl", "--kubeconfig", str(self.cluster.kubeconfig), "-n", NAMESPACE]
        command = ["exec", pod_of, "--", "sh", "-c", f"{{ {script}; }} 2>&1"]
        done = subprocess.run(
            [*kubectl, *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.stdout + done.stderr

    def upgrade(self, file: Path, *changes: str) -> None:
        wait = ("--wait", "--timeout", "120s")
        self.helm("upgrade", "penstock", str(CHART), "-f", str(file), *changes, *wait)

    def leader(self, settings: Settings) -> str:
        """The pod of the controller that leads."""
        holder = holder_of(settings)
        return "" if holder is None else holder.host

    def status(self, settings: Settings) -> str:
        return self.inside(f"pod/{self.leader(settings)}", "penstock status -o json")

    def history(self, settings: Settings) -> str:
        return self.inside(f"pod/{self.leader(settings)}", "penstock history -o json")

    def settings_maps(self) -> set[str]:
        """The settings maps that consumers mount."""
        return {
            volume["configMap"]["name"]
            for one in self.consumers()
            for volume in one["spec"]["template"]["spec"]["volumes"]
            if volume["name"] == "settings"
        }

    def images(self) -> set[str]:
        return {
            one["spec"]["template"]["spec"]["containers"][0]["image"] for one in self.consumers()
        }

    def waits(self, condition: Callable[[], Any], what: str, within_s: float) -> Any:
        deadline_s = time.monotonic() + within_s
        while not (found := condition()):
            assert time.monotonic() < deadline_s, f"not within {within_s} s: {what}\n{self.logs()}"
            time.sleep(1)  # each check of the lake creates clients
        return found


def test_an_installed_group_carries_everything(
    pods_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An installed group follows its load, survives its controller, is upgraded and removed."""
    if pods_cluster.environment is None:
        pytest.skip("a cluster that was named has no folder that its pods and we share")
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl on this machine to look into pods with")
    helm = helm_program()
    for jar_set in USUAL_SETS:
        fetch(jar_set)
    put_on_node(pods_cluster, tmp_path_factory.mktemp("image"))
    folder = tmp_path_factory.mktemp("chart")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    lake = folder / "lake"
    lake.mkdir()
    lake.chmod(0o777)
    address = pods_cluster.host_address
    installed = Installed(helm, pods_cluster)
    with (
        world_writable(),
        writable_volumes(pods_cluster),
        EmbeddedKafka(BrokerPlan(host=address)) as kafka,
        ConnectServer(
            SparkSettings(insecure=True, token=Secret(SPARK_TOKEN)),
            folder=folder / "spark",
            listen_on=address,
        ) as spark,
    ):
        file = folder / "values.yaml"
        file.write_text(yaml.safe_dump(values(kafka, spark, lake)), encoding="utf-8")
        Administration(kafka.settings).create_topic("orders", partitions=PARTITIONS)
        flags = {
            "kafka.bootstrap_servers": kafka.bootstrap_servers,
            "kafka.insecure": "true",
            "lake.root": str(lake),
        }
        settings = load_settings(flags=flags, environment={}).settings
        pods_cluster.must("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for name, key, value in (
            (TOKEN["name"], TOKEN["key"], SPARK_TOKEN),
            (PAGE_SECRET, "token", PAGE_TOKEN),
        ):
            secret = {"metadata": {"name": name}, "stringData": {key: value}}
            pods_cluster.must("POST", f"/api/v1/namespaces/{NAMESPACE}/secrets", secret)
        wait = ("--wait", "--timeout", "150s")
        installed.helm("install", "penstock", str(CHART), "-f", str(file), *wait)
        try:
            _grown_and_exact(installed, settings)
            _taken_over(installed, settings)
            _upgraded(installed, settings, file)
        finally:
            installed.helm("uninstall", "penstock", "--wait", "--timeout", "90s")
        gone = lambda: not pods_cluster.items(NAMESPACE, "pods")  # noqa: E731 -- the name explains it
        until(gone, "no pod is left", 90)
        pods_cluster.forget_namespace(NAMESPACE)


def _grown_and_exact(installed: Installed, settings: Settings) -> None:
    produced(settings, 20)
    installed.waits(lambda: len(installed.consumers()) >= 3, "it grows", 60)
    orders = [TopicPartition("orders", number) for number in range(PARTITIONS)]
    ends = Administration(settings.kafka).end_offsets(orders)
    assert all(ends[one] > 0 for one in orders)
    installed.waits(lambda: carried_so_far(settings) == ends, "all is carried", 180)
    verdict = verify(settings, ["orders"], on_progress=lambda _: None)
    assert verdict.is_exact, verdict
    for one in ("penstock-controller", installed.consumers()[0]["metadata"]["name"]):
        seen = installed.inside(f"deployment/{one}", LOOK_INSIDE)
        assert "10001" in seen
        assert "Read-only file system" in seen
        has_token = "kubernetes.io" in seen
        assert has_token is (one == "penstock-controller"), seen
    assert "orders" in installed.status(settings)
    _shown(installed, settings)


def _shown(installed: Installed, settings: Settings) -> None:
    """The page in its pod knows the group from Kafka and the tables from the lake, to read."""
    page = "deployment/penstock-page"
    tables = json.loads(installed.inside(page, f"{ASK_PAGE} /v1/tables"))
    assert [one["table"] for one in tables["tables"]] == ["orders"], tables
    status = json.loads(installed.inside(page, f"{ASK_PAGE} /v1/status"))
    assert status["status"]["partitions"]["total"] == PARTITIONS
    assert "Read-only file system" in installed.inside(page, f"touch {settings.lake.root}/x")


def _taken_over(installed: Installed, settings: Settings) -> None:
    """The controller that stands by leads within seconds after the other one is killed."""
    pods = {
        one["metadata"]["name"]: one["metadata"]["uid"]
        for one in installed.cluster.items(NAMESPACE, "pods")
        if "-controller-" in one["metadata"]["name"]
    }
    leader = installed.leader(settings)
    (other,) = set(pods) - {leader}
    beside = " ".join(installed.inside(f"pod/{other}", "penstock status").split())
    assert "ago in Kafka" in beside, "the one that stands by has no file of it"
    assert f"{PARTITIONS} partitions" in beside
    killed = processes_of_pod(pods[leader])
    assert killed
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    began_s = time.monotonic()
    installed.waits(lambda: installed.leader(settings) == other, "the other one leads", 30)
    get_logger(component="test").info("other_leads", after_s=round(time.monotonic() - began_s, 1))


def _upgraded(installed: Installed, settings: Settings, file: Path) -> None:
    """Consumers are rolled one by one to the new settings while they carry; a bad image is not."""
    before = installed.settings_maps()
    assert len(before) == 1
    changes = ("--set", "settings.consumer.batch_period=700ms")
    patience = ("--set", "settings.controller.creation_timeout=20s")
    # The load may need one for each partition, beside the spares; one is replaced at a time.
    most = PARTITIONS + settings.controller.spare_consumers + 1
    loading = threading.Thread(target=produced, args=(settings, 45))
    loading.start()
    try:
        installed.upgrade(file, *changes, *patience)

        def is_rolled() -> bool:
            assert len(installed.consumers()) <= most, "one by one"
            return bool(installed.settings_maps()) and not installed.settings_maps() & before

        installed.waits(is_rolled, "all consumers have the new settings", 150)
        (new,) = installed.settings_maps()
    finally:
        loading.join()
    told = installed.history(settings)
    assert f"settings {new}): version 1 replaces the consumers one by one" in told
    assert "every consumer is replaced" in told
    installed.upgrade(file, *changes, *patience, "--set", "consumer.image.tag=missing")
    installed.waits(
        lambda: '"is_rolled_back": true' in installed.status(settings), "it is rolled back", 120
    )
    installed.waits(lambda: installed.images() == {NAME}, "none of the bad image is left", 60)
    orders = [TopicPartition("orders", number) for number in range(PARTITIONS)]
    ends = Administration(settings.kafka).end_offsets(orders)
    installed.waits(lambda: carried_so_far(settings) == ends, "all is carried", 120)
    verdict = verify(settings, ["orders"], on_progress=lambda _: None)
    assert verdict.is_exact, verdict
