"""Every kind of record that a broker takes, by both ways into the lake and back by two readers."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable

from kit.generated_files import assert_up_to_date
from kit.lake.corpus_outcome import MISSING, outcome
from kit.lake.hostile_corpus import (
    COMPACTED,
    HUGE,
    HUGE_BEFORE,
    NOT_TEXT,
    NOT_TEXT_AND_LATE,
    OPEN,
    TOPIC_SETTINGS,
    TRANSFORMATIONS,
    CaseLog,
    Corpus,
)
from kit.lake.lake import Carrier, lake_settings
from penstock.kafka_io.committed_records import all_records
from penstock.laboratory.broker import EmbeddedKafka
from penstock.laboratory.broker.properties import BrokerPlan
from penstock.model import TopicPartition
from penstock.pipeline import Writer, start_session
from penstock.pipeline.connect_server import ConnectServer
from penstock.settings.sections import SparkSettings

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(400)]
RESULTS = Path(__file__).parents[1] / "kit/lake/hostile_corpus.json"
WAYS = ("pass-through", "connector")
SERVER_MEMORY_BYTES = 3 * 2**30
CLEANED_WITHIN_S = 240.0
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def tidy_kafka(broker_jars: None) -> Iterator[EmbeddedKafka]:
    """A broker whose cleaner does not wait."""
    with EmbeddedKafka(BrokerPlan(properties={"log.cleaner.backoff.ms": "200"})) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def large_server(spark_jars: None) -> Iterator[ConnectServer]:
    """A Spark whose heap holds the copies that the connector makes of a record of 64 MB."""
    with ConnectServer(SparkSettings(server_memory=SERVER_MEMORY_BYTES)) as running:
        yield running


@pytest.fixture
def session(large_server: ConnectServer) -> Iterator[Any]:
    found = start_session(SparkSettings(master=large_server.master))
    yield found
    found.stop()


@pytest.fixture(scope="module")
def corpus(tidy_kafka: EmbeddedKafka) -> Corpus:
    """Every case in its topic; the compacted log has been compacted."""
    corpus = Corpus(tidy_kafka.settings)
    corpus.fill()
    _wait_for_the_cleaner(corpus.log_of(COMPACTED))
    return corpus


def _wait_for_the_cleaner(log: CaseLog) -> None:
    """What the cleaner removed is not there for anybody."""
    until_s = time.monotonic() + CLEANED_WITHIN_S
    while time.monotonic() < until_s:
        left = {(0, one.offset) for one in all_records(log.kafka, TopicPartition(log.topic, 0))}
        if len(left) < len(log.visible) / 2:
            log.visible = {place: log.visible[place] for place in sorted(left)}
            return
        time.sleep(0.3)
    raise AssertionError("the cleaner removed nothing: the test is void")


def _carriers(
    corpus: Corpus, server: ConnectServer, session: Any, place: Path
) -> dict[str, Carrier]:
    tables = {topic: {"transformation": name} for topic, name in TRANSFORMATIONS.items()}
    made = {}
    for way in WAYS:
        settings = lake_settings(corpus.kafka, place / way, server.master, tables=tables)
        spark = settings.spark.model_copy(update={"pass_through": way == "pass-through"})
        settings = settings.model_copy(update={"spark": spark})
        made[way] = Carrier(settings, session, Writer(1, 1))
    return made


def _by_pyarrow(table: str, partitions: Sequence[int]) -> Rows:
    chosen = [("partition", "in", list(partitions))]
    rows: Rows = DeltaTable(table).to_pyarrow_table(filters=chosen).to_pylist()
    return rows


def _by_polars(table: str, partitions: Sequence[int]) -> Rows:
    return pl.scan_delta(table).filter(pl.col("partition").is_in(partitions)).collect().to_dicts()


Reader = Callable[[str, Sequence[int]], Rows]
READERS: Mapping[str, Reader] = {"pyarrow": _by_pyarrow, "polars": _by_polars}


def _carry(carrier: Carrier, topics: Iterable[str]) -> None:
    result = carrier.carry([one for topic in topics for one in carrier.plan(topic)])
    assert not result.failures, {str(place): str(why) for place, why in result.failures.items()}


def _read_back(carrier: Carrier, log: CaseLog, read: Reader) -> str:
    tables = [log.topic]
    if log.topic in TRANSFORMATIONS:
        tables.append(carrier.settings.lake.dead_letter_table)
    root = carrier.settings.lake.root
    return outcome(log.visible, *(read(f"{root}/{table}", log.partitions) for table in tables))


def _grows_once(corpus: Corpus, points: list[str]) -> Callable[[str], None]:
    def at_point(point: str) -> None:
        if point == "files-written" and point not in points:
            corpus.grow()
        points.append(point)

    return at_point


def test_every_hostile_record_is_carried_as_the_documents_say(
    corpus: Corpus, large_server: ConnectServer, session: Any, tmp_path: Path
) -> None:
    """Both ways, both readers and `verify` agree, and the committed results are what was seen."""
    carriers = _carriers(corpus, large_server, session, tmp_path)
    # Each in a batch of its own: Spark's heap holds one huge record, and a name that the workers
    # cannot read sends the whole batch by the connector.
    apart = (HUGE, HUGE_BEFORE, NOT_TEXT, NOT_TEXT_AND_LATE)
    together = [topic for topic in TOPIC_SETTINGS if topic not in apart]
    for carrier in carriers.values():
        carrier.pipeline._at_point = _grows_once(corpus, carrier.points)
        _carry(carrier, together)
    assert carriers["pass-through"].points.count("files-written") == 1 + len(TRANSFORMATIONS)
    waiting = corpus.logs[OPEN]
    waiting.end_transaction()
    for carrier in carriers.values():
        assert _read_back(carrier, waiting, _by_pyarrow) == f"{MISSING}; as it is"
        _carry(carrier, together)
        for topic in apart:
            _carry(carrier, [topic])
    found = {}
    for case, log in corpus.logs.items():
        seen = {"refused by the broker": ", ".join(sorted(log.refused))} if log.refused else {}
        for way, carrier in carriers.items():
            said = {name: _read_back(carrier, log, read) for name, read in READERS.items()}
            assert len(set(said.values())) == 1, (case, way, said)
            seen[way] = said["pyarrow"]
        found[case] = seen
    for way, carrier in carriers.items():
        verdict = carrier.verify(*TOPIC_SETTINGS)
        assert verdict.is_exact, (way, [one for one in verdict.partitions if not one.is_exact])
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    (tmp_path / "seen.json").write_text(text, encoding="utf-8")
    assert_up_to_date(RESULTS, text, f"cp {tmp_path}/seen.json")
