"""The text that `/metrics` answers with, in the format of Prometheus.

prometheus-client writes it. Only the series of single partitions are written here: there may be
tens of thousands, and the library takes more than half a second of a core for them. They are
written in small pieces with a pause of nothing in between, so that the process's own work never
waits long for the interpreter.
"""

import gzip
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from penstock.metrics import Kind, Metric, Sample
from penstock.telemetry.metric_store import Labels, MetricStore, Observed

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Who asks more often gets the same text again. A text that takes long is kept for longer, so that
# nobody who asks again and again can take more than a share of a core.
KEPT_S_MIN, KEPT_S_MAX = 0.5, 5.0
SHARE_OF_A_CORE = 1 / 10
_PIECE = 250


class MetricsText:
    """Renders a store for whoever scrapes; for many at once only one time."""

    def __init__(
        self,
        store: MetricStore,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        share_of_a_core: float = SHARE_OF_A_CORE,
    ) -> None:
        self._store = store
        self._monotonic = monotonic
        self._share_of_a_core = share_of_a_core
        self._lock = threading.Lock()
        self._text = b""
        self._packed: bytes | None = None
        self._until_s: float | None = None

    def text(self) -> bytes:
        with self._lock:
            return self._newest()

    def packed(self) -> bytes:
        """The same, compressed with gzip: once for all who ask for it."""
        with self._lock:
            text = self._newest()
            if self._packed is None:
                # The quickest level: metrics are mostly repetition.
                self._packed = gzip.compress(text, compresslevel=1)
            return self._packed

    def _newest(self) -> bytes:
        began_s = self._monotonic()
        if self._until_s is None or began_s >= self._until_s:
            self._text, self._packed = rendered(self._store), None
            ended_s = self._monotonic()
            kept_s = (ended_s - began_s) / self._share_of_a_core
            self._until_s = ended_s + min(KEPT_S_MAX, max(KEPT_S_MIN, kept_s))
        return self._text


def rendered(store: MetricStore) -> bytes:
    """The whole text; a metric without a value is not in it."""
    # Imported with the first scrape: a consumer that nobody scrapes starts without it.
    from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415 -- see above
    from prometheus_client.process_collector import ProcessCollector  # noqa: PLC0415 -- see above

    collected = store.collect()
    few: dict[Metric, list[Sample]] = {}
    of_partitions: dict[Metric, list[Sample]] = {}
    for sample in collected.samples:
        several = of_partitions if sample.metric.is_of_partitions else few
        several.setdefault(sample.metric, []).append(sample)
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    registry.register(_Families(store.group, few, collected.histograms))
    text = [generate_latest(registry).decode(), *_partition_lines(store.group, of_partitions)]
    return "".join(text).encode()


class _Families:
    """What has few series, as the library wants it."""

    def __init__(
        self,
        group: str,
        samples: Mapping[Metric, list[Sample]],
        histograms: Mapping[Metric, Mapping[Labels, Observed]],
    ) -> None:
        self._group = group
        self._samples = samples
        self._histograms = histograms

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import (  # noqa: PLC0415 -- see `rendered`
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        for metric, samples in self._samples.items():
            made = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
            family = made(metric.name, metric.sentence, labels=_label_names(metric))
            for sample in samples:
                family.add_metric((self._group, *sample.labels), sample.value)
            yield family
        for metric, series in self._histograms.items():
            names = _label_names(metric)
            timed = HistogramMetricFamily(metric.name, metric.sentence, labels=names)
            for labels, one in series.items():
                timed.add_metric((self._group, *labels), _cumulated(metric, one), one.total)
            yield timed


def _label_names(metric: Metric) -> tuple[str, ...]:
    return (metric.group_label, *metric.labels)


def _cumulated(metric: Metric, one: Observed) -> list[tuple[str, float]]:
    """As the format wants it: each bucket has all that are at most its bound."""
    buckets, below = [], 0
    for bound, number in zip((*metric.buckets, float("inf")), one.in_bucket, strict=True):
        below += number
        buckets.append(("+Inf" if bound == float("inf") else repr(float(bound)), float(below)))
    return buckets


def _partition_lines(group: str, samples: Mapping[Metric, Iterable[Sample]]) -> Iterator[str]:
    """One text for each piece of a metric's series."""
    texts: dict[tuple[tuple[str, ...], Labels], str] = {}
    for metric, some in samples.items():
        names = _label_names(metric)
        yield f"# HELP {metric.name} {_escaped_help(metric.sentence)}\n"
        yield f"# TYPE {metric.name} {metric.kind.value}\n"
        lines = []
        for sample in some:
            labels = texts.get((names, sample.labels))
            if labels is None:
                pairs = zip(names, (group, *sample.labels), strict=True)
                labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)
                texts[names, sample.labels] = labels
            lines.append(f"{metric.name}{{{labels}}} {float(sample.value)!r}\n")
            if len(lines) == _PIECE:
                yield "".join(lines)
                lines = []
                time.sleep(0)  # not to wait: whoever wants the interpreter gets it now
        yield "".join(lines)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
