"""What Spark shows of a batch has no password: plans, errors, its web page and its event log.

Each batch's plan carries Kafka's password to the server. The web page is off by default; here it is
on, with Spark's event log, as an operator may have them by `spark.options`.
"""

import json
import re
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from pyspark.errors import PySparkException

from kit.canaries import found_below, found_in
from kit.free_ports import free_ports
from kit.lake.lake import produce
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka
from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline.batch import PlannedRange
from penstock.pipeline.connect_server import ConnectServer
from penstock.pipeline.read_range import read_options
from penstock.pipeline.session import disconnect, start_session
from penstock.settings.sections import SparkSettings

pytestmark = [pytest.mark.broker, pytest.mark.spark]
WORD = "canary-of-a-batch-2c8e"
# As `java_properties` makes them; the test's broker wants no password, and reads none.
WITH_SECRETS = {
    "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
    f'username="penny" password="{WORD}";',
    "kafka.ssl.key.password": WORD,
}
PAGES_MAX = 80
_NO_PAGE = re.compile(r"/(static|log|download|kill)|\.(js|css|png|svg|ico)")
_LINK = re.compile(r"(?:href|src)=['\"]([^'\"#]+)")


@pytest.fixture(scope="module")
def shown_server(
    spark_jars: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ConnectServer, str, Path]]:
    """A server with its web page, at an address, and with its event log, in a folder."""
    (port,) = free_ports(1)
    folder = tmp_path_factory.mktemp("spark")
    events = folder / "events"
    events.mkdir()
    options = {
        "spark.ui.enabled": "true",
        "spark.ui.port": str(port),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
    }
    with ConnectServer(SparkSettings(options=options), folder=folder) as server:
        yield server, f"http://127.0.0.1:{port}/", folder


def _asked(address: str) -> str:
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310 -- our own server
            body: bytes = answer.read()
    except urllib.error.HTTPError as error:
        body = error.read()
    return body.decode(errors="replace")


def _pages(begin: str) -> dict[str, str]:
    """Every page and every answer of the API that can be reached from there by links."""
    (application,) = json.loads(_asked(urljoin(begin, "api/v1/applications")))
    api = urljoin(begin, f"api/v1/applications/{application['id']}/")
    waiting = deque([begin, *(urljoin(begin, one) for one in ("SQL/", "connect/", "environment/"))])
    waiting += [urljoin(api, one) for one in ("environment", "sql?details=true", "jobs", "stages")]
    found: dict[str, str] = {}
    while waiting and len(found) < PAGES_MAX:
        address = waiting.popleft()
        parts = urlsplit(address)
        is_page = not (_NO_PAGE.search(parts.path) or "sort=" in parts.query)
        if address in found or parts.netloc != urlsplit(begin).netloc or not is_page:
            continue
        found[address] = _asked(address)
        waiting += [
            urljoin(address, link.replace("&amp;", "&").replace(" ", "%20"))
            for link in _LINK.findall(found[address])
        ]
    return found


def _batch(session: Any, kafka: EmbeddedKafka, topic: str) -> Any:
    Administration(kafka.settings).create_topic(topic, partitions=1)
    produce(kafka.settings, topic, {0: [b"a"] * 5})
    planned = [PlannedRange(OffsetRange(TopicPartition(topic, 0), 0, 5), "id")]
    options = {**read_options(kafka.settings, planned, 1), **WITH_SECRETS}
    return session.read.format("kafka").options(**options).load()


def test_no_password_is_shown(
    kafka: EmbeddedKafka, shown_server: tuple[ConnectServer, str, Path]
) -> None:
    """Of a batch that was carried and of one that failed."""
    server, address, folder = shown_server
    session = start_session(server.settings_here)
    try:
        records = _batch(session, kafka, "shown")
        assert len(records.collect()) == 5
        said = [records._explain_string(mode=mode) for mode in ("extended", "codegen", "formatted")]
        failing = records.selectExpr("assert_true(partition = 7)")
        with pytest.raises(PySparkException) as failed:
            failing.collect()
        said.append(str(failed.value))
        pages = _pages(address)
    finally:
        disconnect(session)
    assert any("kafka" in one.lower() for one in said), "the plans are of the batch"
    assert len([one for one in pages if "/SQL/" in one or "/connect" in one]) > 3, sorted(pages)
    assert found_in("".join(said), [WORD]) == []
    assert [one for one, text in pages.items() if WORD in text] == []
    server.stop(remove_log=False)  # the event log is whole when Spark has ended
    assert list((folder / "events").rglob("*")), "there is an event log"
    assert found_below(folder, [WORD]) == []
