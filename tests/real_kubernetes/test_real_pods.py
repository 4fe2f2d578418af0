"""The whole group in real pods: it carries data, scales, and stays exact while parts are killed."""

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from kit.group.live_group import LiveGroup, busiest, working
from kit.kubernetes.kubernetes_cluster import Cluster, until
from kit.kubernetes.penstock_image import NAME, put_on_node
from kit.kubernetes.pods_group import PodsGroup, made_topic
from kit.program import penstock
from penstock.deployment.kubernetes import kubernetes_deployment
from penstock.deployment.kubernetes.core.names import CONSUMER_LABEL
from penstock.jars import USUAL_SETS, fetch
from penstock.local_group import LocalGroup
from penstock.messages import StartConsumingCommand
from penstock.settings import load_settings

pytestmark = [pytest.mark.kubernetes, pytest.mark.kubernetes_long, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def pods(pods_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodsGroup]:
    if pods_cluster.environment is None:
        pytest.skip("a cluster that was named has no folder that its pods and we share")
    for jar_set in USUAL_SETS:
        fetch(jar_set)
    put_on_node(pods_cluster, tmp_path_factory.mktemp("image"))
    folder = tmp_path_factory.mktemp("pods")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    with PodsGroup(pods_cluster, folder / "shared") as group:
        # A first topic starts the first consumers.
        first = LiveGroup(cast("LocalGroup", group))
        topic(first, "first", 1)
        first.converged({"first": 1})
        yield group


@pytest.fixture
def live(pods: PodsGroup) -> LiveGroup:
    """The same helpers as for a group of local processes."""
    return LiveGroup(cast("LocalGroup", pods))


def topic(live: LiveGroup, name: str, partitions: int = 6) -> str:
    return made_topic(live.administration, name, partitions)


def exact(live: LiveGroup, name: str) -> None:
    verdict = live.drained(name)
    assert verdict.is_exact, verdict
    assert sum(one.lake for one in verdict.partitions) == sum(live.produced.values())


def consumers(live: LiveGroup) -> set[int]:
    return {one["consumer"] for one in live.status().get("consumers", [])}


def test_data_is_carried_and_the_group_grows_and_shrinks(live: LiveGroup, pods: PodsGroup) -> None:
    """The group follows the load, and a removed consumer has shut down cleanly."""
    name = topic(live, "tide")
    with live.loading(f"{name}=100kB/s", seconds=30):
        live.until(lambda status: working(status) >= 3, "three consumers carry")
        many = consumers(live)
    live.until(lambda status: len(status["consumers"]) <= 2, "it has shrunk", 120)
    exact(live, name)
    gone = sorted(many - consumers(live))
    assert gone
    for consumer in gone:
        shut_down_cleanly(pods, consumer)


def shut_down_cleanly(pods: PodsGroup, consumer: int) -> None:
    """Its pod is gone, and its state records a clean shutdown."""
    until(lambda: pods.consumer_pod(consumer) is None, "its pod is gone", 60)
    stored = pods.stored_state(consumer)
    assert stored is not None
    assert stored["state"] == "controlled"


def incarnations_of(pods: PodsGroup, consumer: int) -> list[str]:
    """The previous shutdown that each incarnation found on the volume."""
    pod = pods.consumer_pod(consumer)
    lines = [] if pod is None else pods.log_of_pod(pod).splitlines()
    starts = [json.loads(line) for line in lines if '"consumer_starts"' in line]
    return [str(one["previous_shutdown"]) for one in starts]


def test_a_killed_consumer_restarts_and_detects_the_crash(live: LiveGroup, pods: PodsGroup) -> None:
    """A killed consumer restarts, detects the crash on its volume, and loses nothing."""
    name = topic(live, "storm")
    with live.loading(f"{name}=30kB/s", seconds=25):
        status = live.converged({name: 6})
        victim = busiest(status)
        before = pods.stored_state(victim)
        assert before is not None
        assert before["state"] == "running"
        pods.kill_inside(pods.consumer_pod(victim))
        until(lambda: incarnations_of(pods, victim) == ["uncontrolled"], "it found out", 60)
        live.converged({name: 6})
    exact(live, name)


def test_a_deleted_pod_shuts_down_cleanly_and_is_replaced(live: LiveGroup, pods: PodsGroup) -> None:
    """A deleted pod shuts down cleanly, and its partitions are read elsewhere."""
    name = topic(live, "drain")
    with live.loading(f"{name}=30kB/s", seconds=25):
        victim = busiest(live.converged({name: 6}))
        pod = pods.consumer_pod(victim)
        pods.delete_pod(pod)

        uid = pod["metadata"]["uid"]
        until(lambda: uid not in {one["metadata"]["uid"] for one in pods.pods()}, "it is gone", 60)
        stored = pods.stored_state(victim)
        assert stored is not None
        assert stored["state"] in {"controlled", "running"}
        assert set(incarnations_of(pods, victim)) <= {"controlled"}
        live.converged({name: 6})
    exact(live, name)


def test_a_controller_killed_in_mid_move_is_no_harm(live: LiveGroup, pods: PodsGroup) -> None:
    """A controller killed right after a start command is replaced, and nothing is lost."""
    name = topic(live, "mutiny")
    with live.loading(f"{name}=100kB/s", seconds=30):
        with live.commands() as commands:
            commands.first(StartConsumingCommand, name)
        pods.kill_inside(pods.controller_pod())
        epoch = live.status().get("controller_epoch", 0)
        live.until(lambda status: status["controller_epoch"] > epoch, "another leads", 60)
        live.until(lambda status: working(status) >= 2, "it has grown")
        live.converged({name: 6})
    exact(live, name)


def test_a_new_template_is_rolled_out_consumer_by_consumer(
    live: LiveGroup, pods: PodsGroup
) -> None:
    """A roll-out replaces consumer after consumer while the group works."""
    name = topic(live, "paint")
    with live.loading(f"{name}=30kB/s", seconds=60):
        live.converged({name: 6})
        change = {
            "image": NAME,
            "environment": {"APP_COLOUR": "green"},
            "resources": {"memory_megabytes": 700},
        }
        done = penstock(
            *("service", "send", "update-deployments", json.dumps(change)),
            *("--settings", str(pods.settings_file)),
            timeout_s=180,
        )
        assert done.returncode == 0, done.stderr
        live.converged({name: 6})
        staying = [one for one in pods.pods() if is_staying_consumer(one)]
        assert staying
        for pod in staying:
            container = pod["spec"]["containers"][0]
            assert {"name": "APP_COLOUR", "value": "green"} in container["env"]
            assert container["resources"]["limits"]["memory"] == "700M"
    exact(live, name)


def is_staying_consumer(pod: Any) -> bool:
    metadata = pod["metadata"]
    return CONSUMER_LABEL in metadata["labels"] and "deletionTimestamp" not in metadata


def test_a_volume_that_is_mounted_twice_is_held_by_one(live: LiveGroup, pods: PodsGroup) -> None:
    """Of two pods with the same volume only one gets the lock."""
    name = topic(live, "twins", 2)
    live.converged({name: 2})
    number = min(consumers(live))
    original = pods.consumer_pod(number)
    spec = {**original["spec"], "restartPolicy": "Never"}
    spec.pop("nodeName", None)
    twin = {"metadata": {"name": "twin", "labels": {CONSUMER_LABEL: str(number)}}, "spec": spec}
    base = f"/api/v1/namespaces/{pods.namespace}/pods"
    pods.cluster.must("POST", base, twin)
    try:
        ended = until(lambda: ended_pod(pods, "twin"), "the second one gives up", 60)
        assert "is held by another process" in pods.log_of_pod(ended)
        assert pods.consumer_pod(number)["metadata"]["uid"]
        live.converged({name: 2})
    finally:
        pods.cluster.must("DELETE", f"{base}/twin")


def test_the_back_end_works_with_a_token_file(live: LiveGroup, pods: PodsGroup) -> None:
    """It lists the consumers with an explicit address and token; their logs have their start."""
    number = min(consumers(live))
    token = pods.settings_file.with_name("token")
    token.write_text(pods.cluster.token(pods.namespace), encoding="utf-8")
    flags = {
        "kubernetes.api_server": pods.cluster.client.configuration.host,
        "kubernetes.token_file": str(token),
        "kubernetes.certificate_authority_file": str(pods.cluster.authority),
        "kubernetes.namespace": pods.namespace,
        "kubernetes.pod_template": "",
    }
    loaded = load_settings(pods.settings_file, flags, environment={})
    backend = kubernetes_deployment(loaded)
    try:
        assert "consumer_starts" in pods.log_of_pod(pods.consumer_pod(number))
        assert set(backend.list_consumers()) == consumers(live)
    finally:
        backend.close()


def ended_pod(pods: PodsGroup, name: str) -> Any:
    found = [one for one in pods.pods() if one["metadata"]["name"] == name]
    return found[0] if found and found[0]["status"].get("phase") == "Failed" else None
