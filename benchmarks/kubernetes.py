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
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, cast

# Instead of this folder, in which the client library's name would mean this file.
sys.path.remove(str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from kit.group.live_group import LiveGroup, working
from kit.kubernetes.kubernetes_bench import SimulatedBench
from kit.kubernetes.kubernetes_cluster import Cluster, named_or_own_cluster, until
from kit.kubernetes.penstock_image import put_on_node
from kit.kubernetes.pods_group import PodsGroup, made_topic
from penstock.deployment import DeploymentTemplate
from penstock.jars import USUAL_SETS, fetch
from penstock.local_group import LocalGroup
from penstock.model import ConsumerId
from penstock.verification import carried_so_far

CONSUMERS = 500
ROUNDS = 60
CHURN = 20
STEP_S_MAX = 2.0
GROWTH_BYTES_MAX = 15_000_000
START_S_MAX = 10.0
STARTS = 5
SECONDS_EACH = 25
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
    worst = max(sum(one) for one in steps)
    for name, number in (("list", 0), ("look and repair", 1)):
        parts = [one[number] for one in steps]
        say(f"  {name}: median {statistics.median(parts):.2f} s, worst {max(parts):.2f} s")
    usual = statistics.median(sum(one) for one in steps)
    say(
        f"one round (list, look, repair) at {CONSUMERS} consumers: median {usual:.2f} s, worst "
        f"{worst:.2f} s (bound {STEP_S_MAX} s)"
    )
    say(f"memory: {before / 1e6:.0f} MB, {growth / 1e6:+.1f} MB after {ROUNDS} rounds with churn")
    return worst <= STEP_S_MAX and growth <= GROWTH_BYTES_MAX


def _running(bench: SimulatedBench) -> int:
    found = bench.backend.list_consumers()
    pods = bench.cluster.items(bench.namespace, "pods")
    is_up = sum(1 for one in pods if one["status"].get("phase") == "Running")
    return min(len(found), is_up)


def _rounds(
    bench: SimulatedBench, workers: ThreadPoolExecutor, wanted: list[ConsumerId], rounds: int
) -> list[tuple[float, float]]:
    """Seconds of listing and of looking after.

    Before each a Deployment is deleted by hand; before every tenth consumers come and go.
    """
    took = []
    for number in range(rounds):
        path = f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/bench-consumer-{number + 1}"
        bench.cluster.ask("DELETE", path)
        if number % 10 == 9:
            last = wanted[-CHURN:]
            list(workers.map(_ended, [bench] * CHURN, last))
            list(workers.map(lambda one: bench.backend.create(one, TEMPLATE), last))
        begun_s = time.monotonic()
        bench.backend.list_consumers()
        listed_s = time.monotonic()
        bench.backend.repair()
        took.append((listed_s - begun_s, time.monotonic() - listed_s))
    return took


def _ended(bench: SimulatedBench, consumer: ConsumerId) -> None:
    until(lambda: bench.is_deleted(consumer), f"consumer {consumer} is deleted", 60)


def start() -> bool:
    for jar_set in USUAL_SETS:
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
        status: dict[str, Any] = {}
        with ExitStack() as loads:
            for number in range(STARTS):
                # A partition that fills a consumer: each one needs a consumer of its own.
                name = made_topic(live.administration, f"start-{number}", 1)
                seconds = SECONDS_EACH * (STARTS - number)
                loads.enter_context(live.loading(f"{name}=200kB/s", seconds=seconds))
                status = live.until(partial(_carry, number + 1), f"{number + 1} carry")
                # A Spark server's first batch takes seconds, and a stop waits for it: the question
                # here is what Kubernetes takes.
                until(partial(_has_carried, live, name), f"{name} reaches the lake", 60)
        took_s = _plans_with_a_start_s(status)
        for one in took_s:
            say(f"decision to consuming: {one:.2f} s")
        worst = max(took_s)
        say(
            f"from decision to the new consumer consuming, {len(took_s)} times: median "
            f"{statistics.median(took_s):.2f} s, worst {worst:.2f} s (bound {START_S_MAX} s)"
        )
        return worst <= START_S_MAX and len(took_s) >= STARTS


def _has_carried(live: LiveGroup, name: str) -> bool:
    return any(carried_so_far(live.group.settings, [name]).values())


def _carry(number: int, status: dict[str, Any]) -> bool:
    return working(status) >= number and status["phase"] == "Sentinel" and not status["moves"]


def _plans_with_a_start_s(status: dict[str, Any]) -> list[float]:
    """Of every plan that created a consumer: from its making to the last of its starts."""
    ages_ms: dict[str, dict[int, int]] = {}
    for one in status["history"]:
        ages_ms.setdefault(one["code"], {}).setdefault(one["plan"], one["age_ms"])
    made, done, created = (
        ages_ms.get(code, {}) for code in ("plan_made", "plan_done", "consumer_created")
    )
    # A spare that is created after a plan is done has the number of that plan too.
    return [
        (made[plan] - done[plan]) / 1000
        for plan in sorted(made.keys() & done.keys() & created.keys())
        if created[plan] >= done[plan]
    ]


def main() -> int:
    asked = sys.argv[1:] or ["many", "start"]
    results = [{"many": many, "start": start}[one]() for one in asked]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
