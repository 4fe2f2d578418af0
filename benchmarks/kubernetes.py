"""The Kubernetes back-end against its targets, on a real API server.

`python benchmarks/kubernetes.py` prints what it measured; the exit code is 1 when a bound is
broken. `many`: 500 consumers as simulated pods; one round of looking after them (list from the API
server, look, repair) takes at most 2 s, and memory stays flat. `start`: on a real node, from the
controller's decision to a new consumer that carries, at most 10 s; it needs root. Both need the
test cluster (see tests/kit/kubernetes_cluster.py).
"""

import gc
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

# Instead of this folder, in which the client library's name would mean this file.
sys.path.remove(str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from kit.kubernetes_bench import SimulatedBench
from kit.kubernetes_cluster import Cluster, named_or_own_cluster, until
from kit.live_group import LiveGroup
from kit.penstock_image import put_on_node
from kit.pods_group import PodsGroup
from penstock.deployment import DeploymentTemplate
from penstock.jars import JarSet, fetch
from penstock.local_group import LocalGroup
from penstock.model import ConsumerId

CONSUMERS = 500
ROUNDS = 60
CHURN = 20
STEP_S_MAX = 2.0
GROWTH_BYTES_MAX = 15_000_000
START_S_MAX = 10.0
STARTS = 5
TEMPLATE = DeploymentTemplate(version=1)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * 4096


def many() -> bool:
    with named_or_own_cluster(real_pods=False) as cluster:
        bench = SimulatedBench(cluster, cpu_request="10m", memory_request="16Mi")
        try:
            return _many(bench)
        finally:
            bench.close()


def _many(bench: SimulatedBench) -> bool:
    wanted = [ConsumerId(number) for number in range(1, CONSUMERS + 1)]
    with ThreadPoolExecutor(8) as workers:
        begun_s = time.monotonic()
        list(workers.map(lambda one: bench.backend.create(one, TEMPLATE), wanted))
        say(f"{CONSUMERS} consumers created in {time.monotonic() - begun_s:.1f} s")
        until(lambda: _running(bench) == CONSUMERS, "all run", 180)
        _rounds(bench, workers, wanted, 10)  # until everything that is ever needed is there
        before = resident_bytes()
        steps = _rounds(bench, workers, wanted, ROUNDS)
        growth = resident_bytes() - before
    worst = max(steps)
    say(
        f"one round (list, look, repair) at {CONSUMERS} consumers: median "
        f"{statistics.median(steps):.2f} s, worst {worst:.2f} s (bound {STEP_S_MAX} s)"
    )
    say(f"memory: {before / 1e6:.0f} MB, {growth / 1e6:+.1f} MB after {ROUNDS} rounds with churn")
    return worst <= STEP_S_MAX and growth <= GROWTH_BYTES_MAX


def _running(bench: SimulatedBench) -> int:
    found = bench.backend.listed()
    pods = bench.cluster.items(bench.namespace, "pods")
    is_up = sum(1 for one in pods if one["status"].get("phase") == "Running")
    return min(len(found), is_up)


def _rounds(
    bench: SimulatedBench, workers: ThreadPoolExecutor, wanted: list[ConsumerId], rounds: int
) -> list[float]:
    """Each with a deployment deleted by hand, and every tenth with consumers that come and go."""
    took = []
    for number in range(rounds):
        path = f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/bench-consumer-{number + 1}"
        bench.cluster.ask("DELETE", path)
        if number % 10 == 9:
            last = wanted[-CHURN:]
            list(workers.map(_ended, [bench] * CHURN, last))
            list(workers.map(lambda one: bench.backend.create(one, TEMPLATE), last))
        begun_s = time.monotonic()
        bench.backend.listed()
        bench.backend.tend()
        took.append(time.monotonic() - begun_s)
    return took


def _ended(bench: SimulatedBench, consumer: ConsumerId) -> None:
    until(lambda: bench.is_deleted(consumer), f"consumer {consumer} is deleted", 60)


def start() -> bool:
    for jar_set in JarSet:
        fetch(jar_set)
    with named_or_own_cluster(real_pods=True) as cluster, tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        put_on_node(cluster, Path(folder) / "image")
        return _start(cluster, Path(folder) / "shared")


def _start(cluster: Cluster, folder: Path) -> bool:
    changes: dict[str, Any] = {
        "controller__spare_consumers": 0,
        "controller__consumers_max": STARTS + 1,
    }
    with PodsGroup(cluster, folder, **changes) as group:
        live = LiveGroup(cast("LocalGroup", group))
        took_s = []
        for number in range(STARTS):
            # A partition that fills a consumer: each one needs a consumer of its own.
            name = f"start-{number}"
            live.administration.create_topic(name, partitions=1, replication_factor=1, settings={})
            with live.loading(f"{name}=200kB/s", seconds=12):
                status = live.converged({name: 1})
                took_s.append(_newest_plan_s(status))
                say(f"decision to consuming: {took_s[-1]:.2f} s")
        worst = max(took_s)
        say(
            f"from decision to the new consumer consuming: median {statistics.median(took_s):.2f} "
            f"s, worst {worst:.2f} s (bound {START_S_MAX} s)"
        )
        return worst <= START_S_MAX


def _newest_plan_s(status: dict[str, Any]) -> float:
    """How long the newest plan that made a consumer took: from its making to its last start."""
    made = [one for one in status["history"] if one["code"] == "plan_made"]
    done = [one for one in status["history"] if one["code"] == "plan_done"]
    newest = made[-1]
    ended = next(one for one in done if one["plan"] == newest["plan"])
    return float(newest["age_ms"] - ended["age_ms"]) / 1000


def main() -> int:
    asked = sys.argv[1:] or ["many", "start"]
    results = [{"many": many, "start": start}[one]() for one in asked]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
