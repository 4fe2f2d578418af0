"""Back-ends in their own namespaces, with the shipped role's rights."""

from collections.abc import Iterator

import pytest

from kit.kubernetes.faulty_proxy import FaultyProxy
from kit.kubernetes.kubernetes_bench import SimulatedBench
from kit.kubernetes.kubernetes_cluster import Cluster


@pytest.fixture
def bench(simulated_cluster: Cluster) -> Iterator[SimulatedBench]:
    made = SimulatedBench(simulated_cluster)
    yield made
    made.close()


@pytest.fixture
def proxy(simulated_cluster: Cluster) -> Iterator[FaultyProxy]:
    with FaultyProxy(simulated_cluster) as running:
        yield running


@pytest.fixture
def proxied(simulated_cluster: Cluster, proxy: FaultyProxy) -> Iterator[SimulatedBench]:
    """A back-end behind a proxy that can inject faults."""
    made = SimulatedBench(simulated_cluster, host=proxy.host)
    yield made
    made.close()
