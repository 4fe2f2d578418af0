"""Hundreds of consumers, and an API server that dies while they are created."""

import gc
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kit.kubernetes.kubernetes_bench import SimulatedBench
from kit.kubernetes.kubernetes_cluster import (
    Cluster,
    named_or_own_cluster,
    until,
    without_api_server,
)
from penstock.deployment import DeploymentError, DeploymentTemplate
from penstock.model import ConsumerId

pytestmark = pytest.mark.kubernetes
FIRST = DeploymentTemplate(version=1)
# As many as the controller has.
WORKERS = 8


def numbers(count: int) -> list[ConsumerId]:
    return [ConsumerId(number) for number in range(1, count + 1)]


@pytest.mark.kubernetes_long
def test_two_hundred_come_and_go(bench: SimulatedBench) -> None:
    """200 consumers are created and deleted, and only their volumes are left."""
    wanted = numbers(200)
    with ThreadPoolExecutor(WORKERS) as workers:
        begun_s = time.monotonic()
        list(workers.map(lambda one: bench.backend.create(one, FIRST), wanted))
        created_s = time.monotonic() - begun_s
        assert list(bench.backend.list_consumers()) == wanted
        until(lambda: _available(bench) == 200, "all run", 90)
        begun_s = time.monotonic()
        list(workers.map(lambda one: until(lambda: bench.is_deleted(one), "gone"), wanted))
        deleted_s = time.monotonic() - begun_s
    assert bench.backend.list_consumers() == {}
    assert len(bench.cluster.items(bench.namespace, "persistentvolumeclaims")) == 200
    assert bench.backend.repair() == []
    assert max(created_s, deleted_s) < 60


def _available(bench: SimulatedBench) -> int:
    found = bench.cluster.deployments(bench.namespace)
    return sum(1 for one in found if one["status"].get("availableReplicas"))


@pytest.fixture
def fragile() -> Iterator[Cluster]:
    """A separate cluster whose API server may be killed."""
    with named_or_own_cluster(real_pods=False) as cluster:
        if cluster.environment is None:
            pytest.skip("a cluster that was named is not harmed")
        yield cluster


def pressed(bench: SimulatedBench, consumer: ConsumerId, stop: threading.Event) -> int:
    """Create as the controller does: repeat after a retryable error."""
    failures = 0
    while not stop.is_set():
        try:
            bench.backend.create(consumer, FIRST)
        except DeploymentError as error:
            if not error.is_retryable:
                raise
            failures += 1
        else:
            return failures
    raise AssertionError(f"consumer {consumer} was never made")


# The client library leaves a socket open when a server dies during the handshake.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_api_server_that_dies_in_mid_plan_delays_it_and_no_more(fragile: Cluster) -> None:
    """After the API server was killed during creations, all consumers exist."""
    bench = SimulatedBench(fragile)
    stop = threading.Event()
    wanted = numbers(24)
    try:
        bench.backend.create(wanted[0], FIRST)
        lists = bench.backend._deployments.lists
        with ThreadPoolExecutor(WORKERS) as workers:
            with without_api_server(fragile):
                asked = [workers.submit(pressed, bench, one, stop) for one in wanted]
                until(lambda: bench.backend._deployments.trouble, "the watch notices")
                with pytest.raises(DeploymentError):
                    bench.backend.repair()
                assert bench.backend.repair() == []  # reported once; the old copy is not used
                with pytest.raises(DeploymentError) as raised:
                    bench.backend.list_consumers()
                assert raised.value.is_retryable
            try:
                for one in asked:
                    one.result(timeout=60)
            finally:
                stop.set()
        until(lambda: bench.backend._deployments.trouble is None, "in touch again", 60)
        assert bench.backend._deployments.lists > lists
        assert list(bench.backend.list_consumers()) == wanted
        until(lambda: bench.is_deleted(wanted[1]), "one is deleted", 60)
        assert list(bench.backend.list_consumers()) == [wanted[0], *wanted[2:]]
        until(lambda: bench.backend._pods.trouble is None, "in touch again", 60)
        assert all("made again" not in one.explanation for one in bench.backend.repair())
    finally:
        stop.set()
        bench.close()
        gc.collect()  # so that it does not happen during another test
