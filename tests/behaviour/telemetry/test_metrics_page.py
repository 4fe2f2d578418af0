"""What `/metrics` answers, and to whom."""

import gzip
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.errors import PenstockError
from penstock.metrics import Process, Sample
from penstock.metrics import of_consumer as of
from penstock.metrics.of_controller import PARTITION_BACKLOG, TOPIC_BACKLOG
from penstock.telemetry import Health, HealthServer, MetricStore, exposition, guarded_server
from penstock.telemetry.exposition import MetricsText, rendered
from penstock.telemetry.guarded_server import CONNECTIONS_MAX
from penstock.telemetry.metric_targets import named_target


def values(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample of a text, by name and labels, as another program reads it."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def labels(**given: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({"group": "g", **given}.items()))


@pytest.fixture
def store() -> MetricStore:
    return MetricStore("g", Process.CONSUMER)


@pytest.fixture
def server(store: MetricStore) -> Iterator[HealthServer]:
    with HealthServer(Health(), 0, "127.0.0.1", MetricsText(store)) as made:
        yield made


def asked(
    server: HealthServer, method: str, path: str = "/metrics", **headers: str
) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=5)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, headers=named)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_counters_gauges_and_histograms_are_read_back(store: MetricStore) -> None:
    """Another program's parser finds the same values, buckets cumulated."""
    store.count(of.BATCHES, "3", "carried")
    store.count(of.BATCHES, "3", "carried", by=2)
    store.set(of.TABLE_FILES, 7, "3", "orders")
    for seconds in (0.005, 0.02, 400.0):
        store.observe(of.BATCH_SECONDS, seconds, "3")
    found = values(rendered(store).decode())
    assert found["penstock_batches_total", labels(consumer="3", outcome="carried")] == 3
    assert found["penstock_table_files", labels(consumer="3", table="orders")] == 7
    assert found["penstock_batch_seconds_bucket", labels(consumer="3", le="0.005")] == 1
    assert found["penstock_batch_seconds_bucket", labels(consumer="3", le="0.025")] == 2
    assert found["penstock_batch_seconds_bucket", labels(consumer="3", le="300.0")] == 2
    assert found["penstock_batch_seconds_bucket", labels(consumer="3", le="+Inf")] == 3
    assert found["penstock_batch_seconds_count", labels(consumer="3")] == 3
    assert found["penstock_batch_seconds_sum", labels(consumer="3")] == pytest.approx(400.025)


def test_series_of_partitions_are_as_the_library_writes_them(
    store: MetricStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written by us: escaped, in pieces, and read back like all others."""
    monkeypatch.setattr(exposition, "_PIECE", 2)
    hostile = 'a"b\\c\nd'
    store.ask(lambda: [Sample(PARTITION_BACKLOG, (hostile, str(n)), n / 2) for n in range(5)])
    store.ask(lambda: [Sample(TOPIC_BACKLOG, (hostile,), 1e18)])
    found = values(rendered(store).decode())
    for number in range(5):
        key = labels(topic=hostile, partition=str(number))
        assert found["penstock_partition_backlog_records", key] == number / 2
    assert found["penstock_topic_backlog_records", labels(topic=hostile)] == 1e18


def test_wrong_labels_are_refused(store: MetricStore) -> None:
    """A metric takes its own labels and its own kind of value only."""
    with pytest.raises(ValueError, match="penstock_batches_total"):
        store.count(of.BATCHES, "3")
    with pytest.raises(ValueError, match="counter"):
        store.set(of.BATCHES, 1, "3", "carried")


def test_only_get_and_head_are_answered(server: HealthServer) -> None:
    """HEAD has the headers alone; every other method is refused, whatever its name."""
    answer, body = asked(server, "GET")
    assert answer.status == 200
    assert b"penstock_build_info" in body
    answer, body = asked(server, "HEAD")
    assert (answer.status, body) == (200, b"")
    assert int(answer.headers["Content-Length"]) > 0
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "ANYTHING"):
        answer, _ = asked(server, method)
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_it_is_packed_for_who_can_unpack_it(server: HealthServer) -> None:
    """With gzip it is the same text, shorter."""
    _, plain = asked(server, "GET")
    answer, packed = asked(server, "GET", Accept_Encoding="gzip")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(packed) < len(plain)
    assert gzip.decompress(packed).startswith(plain[:200])


def test_who_asks_again_at_once_gets_the_same_text(store: MetricStore) -> None:
    """Many scrapers cost no more than one; later the text is made again."""
    now_s = 0.0
    page = MetricsText(store, monotonic=lambda: now_s)
    before = page.text()
    store.count(of.BATCHES, "3", "carried")
    assert page.text() == before
    now_s = 1.0
    assert b"penstock_batches_total{" in page.text()


def test_a_text_that_takes_long_is_kept_for_longer(
    store: MetricStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So who asks without a pause takes a tenth of a core, not all of it; gzip or not."""
    clock, made = [0.0], [0]

    def slow(_: MetricStore) -> bytes:
        clock[0] += 0.3
        made[0] += 1
        return b"text %d" % made[0]

    monkeypatch.setattr(exposition, "rendered", slow)
    page = MetricsText(store, monotonic=lambda: clock[0])
    while clock[0] < 33:
        assert gzip.decompress(page.packed()) == page.text() == b"text %d" % made[0]
        clock[0] += 0.01
    assert made[0] == pytest.approx(10, abs=1)


SLOW = 400


def test_slow_connections_stand_in_nobodys_way(store: MetricStore) -> None:
    """Each has sent half a request. Probes are answered, and the process keeps few of them."""
    with (
        HealthServer(Health(), 0, "127.0.0.1", MetricsText(store)) as server,
        ExitStack() as slow,
    ):
        threads = threading.active_count()
        opened = []
        for _ in range(SLOW):
            raw = slow.enter_context(socket.create_connection(("127.0.0.1", server.port), 10))
            raw.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
            opened.append(raw)
        for _ in range(5):
            assert asked(server, "GET", "/healthz")[0].status == 200
            assert asked(server, "GET", "/metrics")[0].status == 200
        assert threading.active_count() <= threads + CONNECTIONS_MAX + 10
        assert sum(map(_is_ended, opened)) >= SLOW - CONNECTIONS_MAX


def test_a_request_that_comes_letter_by_letter_is_not_waited_for(
    store: MetricStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each letter comes in time, the whole request does not."""
    monkeypatch.setattr(guarded_server, "REQUEST_WITHIN_S", 0.5)
    with (
        HealthServer(Health(), 0, "127.0.0.1", MetricsText(store)) as server,
        socket.create_connection(("127.0.0.1", server.port), 10) as raw,
    ):
        for _ in range(100):
            time.sleep(0.1)
            try:
                raw.sendall(b"G")
            except (BrokenPipeError, ConnectionResetError):
                return
    raise AssertionError("it was waited for")


def _is_ended(raw: socket.socket) -> bool:
    raw.setblocking(False)
    try:
        while raw.recv(4096):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        pass
    return True


def test_a_local_process_notes_where_it_is_scraped(tmp_path: Path) -> None:
    """The file is there while it runs, and is not taken from a newer process of that name."""
    with named_target(tmp_path / "targets", "consumer-3", 4711) as file:
        assert '"127.0.0.1:4711"' in file.read_text()
    assert list((tmp_path / "targets").iterdir()) == []
    with (
        named_target(tmp_path, "consumer-3", 4711) as file,
        named_target(tmp_path, "consumer-3", 4712),
    ):
        pass
    assert not file.exists()
    with named_target(tmp_path, "consumer-3", 4711) as file:
        file.write_text("[]")
    assert file.exists()


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    """It names the setting."""
    (tmp_path / "file").write_text("")
    with pytest.raises(PenstockError) as raised, named_target(tmp_path / "file", "monitor", 1):
        pass
    assert "telemetry.metrics_targets" in raised.value.remedy
