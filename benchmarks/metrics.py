"""What a scrape of the controller costs in a large group, and what it does to the steps.

`python benchmarks/metrics.py` prints the figures; the exit code is 1 when a bound is broken. The
bounds are the project's: at 10,000 partitions and 500 consumers a scrape takes at most 0.5 s of a
core, and steps are not slower for it. For the second, the same steps are made in turns, ten seconds
with a scrape every second (Prometheus asks every 15 to 60 s) and ten without, and the means are
compared as a ratio: so what else runs on the machine concerns both. The scrape goes over HTTP, as
Prometheus makes it.
"""

import gzip
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from statistics import fmean, quantiles

from controller_step import Group

from penstock.controller.core import inputs
from penstock.controller.process.metrics import ControllerMetrics
from penstock.metrics import Process
from penstock.settings import changed_settings
from penstock.telemetry import Health, HealthServer, MetricStore
from penstock.telemetry.exposition import MetricsText, rendered

PARTITIONS, CONSUMERS = 10_000, 500
SCRAPE_S_MAX = 0.5
# A step that meets a scrape waits for the interpreter; in the mean over all steps it must not show.
RATIO_MAX = 1.1
TURN_S = 10.0
TURNS = 3
# As in a real group: a report of every consumer, and a measurement, each second.
STEPS_PER_S = 100
ROUNDS = 5


def prepared() -> tuple[Group, MetricStore, ControllerMetrics]:
    group = Group(PARTITIONS, CONSUMERS)
    group.settings = changed_settings(group.settings, {"telemetry.lag_names": "true"})
    store = MetricStore(
        "penstock", Process.CONTROLLER, partition_series_max=20_000, with_lag_names=True
    )
    store.is_served = True
    metrics = ControllerMetrics(group.settings, store)
    group.settle()
    metrics.begun(group.state)
    for end in (100, 200, 300):
        give(group, metrics, measurement(group, end))
    return group, store, metrics


def measurement(group: Group, end: int) -> inputs.Input:
    logs = dict.fromkeys(group.partitions, inputs.LogExtent(0, end, 100.0))
    return inputs.SpeedsMeasured(group.state.now_ms, group.speeds, logs=logs)


def give(group: Group, metrics: ControllerMetrics, given: inputs.Input) -> float:
    """One step as the loop makes it; how long it took."""
    before, began_s = group.state, time.perf_counter()
    group.give(given)
    metrics.stepped(before, group.state, 0.001, is_degraded=False)
    return time.perf_counter() - began_s


def scrape_s(store: MetricStore) -> tuple[float, int]:
    best, size = float("inf"), 0
    for _ in range(ROUNDS):
        began_s = time.process_time()
        size = len(rendered(store))
        best = min(best, time.process_time() - began_s)
    return best, size


@contextmanager
def scraped(port: int) -> Iterator[list[float]]:
    """Somebody scrapes once a second."""
    stop, took = threading.Event(), list[float]()

    def scrape() -> None:
        while not stop.is_set():
            began_s = time.perf_counter()
            connection = HTTPConnection("127.0.0.1", port)
            connection.request("GET", "/metrics", headers={"Accept-Encoding": "gzip"})
            gzip.decompress(connection.getresponse().read())
            connection.close()
            took.append(time.perf_counter() - began_s)
            stop.wait(max(0.0, 1.0 - took[-1]))

    thread = threading.Thread(target=scrape)
    thread.start()
    yield took
    stop.set()
    thread.join()


def steps_for(group: Group, metrics: ControllerMetrics, seconds: float) -> list[float]:
    """Reports and measurements at their pace, each timed."""
    took, number, began_s = list[float](), 0, time.monotonic()
    while time.monotonic() - began_s < seconds:
        number += 1
        is_report = number % STEPS_PER_S
        given = group.report(1 + number % CONSUMERS) if is_report else measurement(group, 400)
        took.append(give(group, metrics, given))
        # At a pace, as in a group: steps back to back would only compete for the interpreter.
        time.sleep(max(0.0, began_s + number / STEPS_PER_S - time.monotonic()))
    return took


def main() -> int:
    group, store, metrics = prepared()
    best_s, size = scrape_s(store)
    say = sys.stdout.write
    say(f"{PARTITIONS} partitions, {CONSUMERS} consumers, with the names of Kafka exporters\n")
    say(f"  scrape, processor time      {best_s * 1000:8.0f} ms, {size / 1e6:.1f} MB as text\n")
    without, with_scrapes, wall = list[float](), list[float](), list[float]()
    # Each scrape makes its own text: what a process does against too many scrapes would hide them.
    page = MetricsText(store, share_of_a_core=1)
    with HealthServer(Health(), 0, "127.0.0.1", page) as server:
        for _ in range(TURNS):
            without += steps_for(group, metrics, TURN_S)
            with scraped(server.port) as took:
                with_scrapes += steps_for(group, metrics, TURN_S)
            wall += took
    say(f"  scrape over HTTP, wall      {fmean(wall) * 1000:8.0f} ms in the mean of {len(wall)}\n")
    ratio = fmean(with_scrapes) / fmean(without)
    for name, some in (("without", without), ("with a scrape a second", with_scrapes)):
        late = quantiles(some, n=100)[98]
        say(f"  step {name:23} {fmean(some) * 1000:8.2f} ms, 99 % below {late * 1000:.1f} ms\n")
    # On a busy machine scrapes take more than a second and come less often than that. Somebody who
    # scrapes every 15 s disturbs so much less.
    every_s = TURNS * TURN_S / len(wall)
    usual = 1 + (ratio - 1) * every_s / 15
    say(f"  ratio {ratio:.2f} with a scrape every {every_s:.1f} s, so {usual:.3f} every 15 s\n")
    return int(best_s > SCRAPE_S_MAX or usual > RATIO_MAX)


if __name__ == "__main__":
    sys.exit(main())
