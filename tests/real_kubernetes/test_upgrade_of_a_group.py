"""A group is upgraded: real broker, real API server, real controller and consumers.

The nodes are simulated, so the test does a kubelet's work: it runs the command of each consumer's
Deployment as a process, with the settings map that the Deployment names, if it has the image. There
is no Spark, so consumers take partitions over and carry nothing.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from kit.kubernetes.kubernetes_cluster import Cluster, role_rules, until
from penstock.deployment.kubernetes.core.names import CONSUMER_LABEL
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.control_topics import make_control_topics
from penstock.laboratory.broker import EmbeddedKafka
from penstock.settings import load_settings

pytestmark = [pytest.mark.kubernetes, pytest.mark.kubernetes_long, pytest.mark.timeout(400)]
# For processes on a busy machine.
BUSY_S = 90.0
SHORT_S = 8.0
HAS_IMAGES = ("penstock:1", "penstock:3")


class Kubelet:
    """Runs what the Deployments of consumers ask for, and ends what is gone."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        self._cluster, self._namespace, self._folder = cluster, namespace, folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        for process in self._running.values():
            process.kill()
            process.wait(BUSY_S)

    def _work(self) -> None:
        while not self._is_over.wait(0.3):
            found = {
                one["metadata"]["uid"]: one for one in consumers(self._cluster, self._namespace)
            }
            for uid in set(self._running) - set(found):
                process = self._running.pop(uid)
                process.send_signal(signal.SIGTERM)
                process.wait(BUSY_S)
            for uid in set(found) - set(self._running):
                if image_of(found[uid]) in HAS_IMAGES:
                    self._running[uid] = self._started(found[uid])

    def _started(self, deployment: Any) -> subprocess.Popen[bytes]:
        number = deployment["metadata"]["labels"][CONSUMER_LABEL]
        program, *words = container_of(deployment)["command"]
        assert program == "penstock"
        places = {
            "/var/lib/penstock/state": str(self._folder / f"consumer-{number}"),
            "/etc/penstock/penstock.yaml": str(self._folder / map_of(deployment)),
        }
        # Pods have a port 8080 each; processes of one machine do not.
        at = words.index("--health-port")
        del words[at : at + 2]
        with (self._folder / f"consumer-{number}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "penstock", *(places.get(one, one) for one in words)],
                env={**os.environ, "PENSTOCK_CONSUMER_ID": number},
                stdout=log,
                stderr=log,
            )


def consumers(cluster: Cluster, namespace: str) -> list[Any]:
    """The consumers' Deployments that are not being deleted."""
    return [
        one
        for one in cluster.deployments(namespace)
        if CONSUMER_LABEL in one["metadata"].get("labels", {})
        and "deletionTimestamp" not in one["metadata"]
    ]


def container_of(deployment: Any) -> Any:
    return deployment["spec"]["template"]["spec"]["containers"][0]


def image_of(deployment: Any) -> str:
    return str(container_of(deployment)["image"])


def map_of(deployment: Any) -> str:
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    (found,) = (one["configMap"]["name"] for one in volumes if one["name"] == "settings")
    return str(found)


class Group:
    def __init__(self, cluster: Cluster, kafka: EmbeddedKafka, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.namespace = cluster.new_namespace()
        cluster.bind(self.namespace, role_rules(remove_volumes=False))
        (folder / "token").write_text(cluster.token(self.namespace), encoding="utf-8")
        self._servers = kafka.bootstrap_servers
        Administration(kafka.settings).create_topic("upgraded", partitions=1)

    def settings(self, release: int) -> Path:
        """The settings of a release, in a file with the name of its map."""
        image = f"penstock:{release}"
        content = {
            "kafka": {"bootstrap_servers": self._servers},
            "topics": {"prefix": "upgraded"},
            "lake": {"root": str(self.folder / "lake"), "group": "upgraded"},
            "spark": {"master": "sc://127.0.0.1:1"},
            "monitor": {"include": ["upgraded"]},
            "log": {"format": "json"},
            "controller": {
                "deployment": "kubernetes",
                "directory": str(self.folder / "controller"),
                # Short only for the one that cannot start: others are slow on a busy machine.
                "creation_timeout": f"{BUSY_S if image in HAS_IMAGES else SHORT_S:g}s",
                "creation_slack": 1.0,
            },
            "kubernetes": {
                "api_server": self.cluster.client.configuration.host,
                "token_file": str(self.folder / "token"),
                "certificate_authority_file": str(self.cluster.authority),
                "namespace": self.namespace,
                "image": image,
                "settings_config_map": f"settings-{release}",
            },
        }
        file = self.folder / f"settings-{release}"
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        return file

    @contextmanager
    def runs(self, command: str, release: int) -> Iterator[None]:
        with (self.folder / f"{command}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "penstock", command, "--settings", self.settings(release)],
                stdout=log,
                stderr=log,
            )
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(BUSY_S)

    def status(self) -> Any:
        """What the controller that runs last said; empty before its first word."""
        with suppress(OSError, ValueError):
            return json.loads((self.folder / "controller" / "status.json").read_text())
        return {"consumers": [], "controller_epoch": 0}

    def made_of(self) -> set[tuple[str, str]]:
        """The image and the settings map of the consumers."""
        found = consumers(self.cluster, self.namespace)
        return {(image_of(one), map_of(one)) for one in found}

    def version_that_reads(self) -> int | None:
        """The version of the consumer that has the partition."""
        status = self.status()
        held = status.get("partitions", {}).get("upgraded-0", {})
        versions = {one["consumer"]: one["deployment_version"] for one in status["consumers"]}
        found: int | None = versions.get(held.get("consumer"))
        return found

    def tells(self, *words: str) -> bool:
        history = json.dumps(self.status().get("history", []))
        return all(word in history for word in words)


def test_a_start_rolls_the_consumers_and_goes_back_from_what_fails(
    simulated_cluster: Cluster, kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    """A release without its image is rolled back and not tried again; the next one is rolled."""
    group = Group(simulated_cluster, kafka, tmp_path)
    first, second, third = (f"penstock:{n} settings-{n}".split() for n in (1, 2, 3))
    make_control_topics(load_settings(group.settings(1), environment={}).settings)
    with Kubelet(simulated_cluster, group.namespace, tmp_path), group.runs("monitor", 1):
        with group.runs("controller", 1):
            until(lambda: group.version_that_reads() == 0, "a consumer reads", BUSY_S)
            assert group.made_of() == {tuple(first)}
        with group.runs("controller", 2):
            both = {tuple(first), tuple(second)}
            until(lambda: group.made_of() == both, "it is tried beside the first", BUSY_S)
            until(
                lambda: group.status().get("deployment", {}).get("is_rolled_back"),
                "it is rolled back",
                BUSY_S,
            )
            until(lambda: group.made_of() == {tuple(first)}, "what failed is gone", BUSY_S)
            assert group.tells("image penstock:2, settings settings-2", "rolled back")
        epoch = group.status()["controller_epoch"]
        with group.runs("controller", 2):
            until(lambda: group.status()["controller_epoch"] > epoch, "it leads", BUSY_S)
            until(lambda: group.status().get("phase") == "Sentinel", "it is calm", BUSY_S)
            status = group.status()
            assert (status["roll_out"], status["deployment"]["is_rolled_back"]) == (None, True)
        with group.runs("controller", 3):
            until(lambda: group.made_of() == {tuple(third)}, "the first is replaced", BUSY_S)
            until(lambda: group.version_that_reads() == 3, "the new one reads", BUSY_S)
            assert group.status()["deployment"]["image"] == "penstock:3"
            assert not group.status()["deployment"]["is_rolled_back"]
            assert group.tells("image penstock:3, settings settings-3", "one by one")
    simulated_cluster.forget_namespace(group.namespace)
