"""`penstock.testing`: a user's transformation on the records of a test, as production has it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions
from pyspark.sql.connect import session as connect

from kit.consumer import transformations
from kit.lake.lake import Carrier, new_topic_name, produce
from kit.own_cache import make_own_cache
from penstock.pipeline.given_records import RAW_SCHEMA
from penstock.pipeline.read_range import read_ranges
from penstock.pipeline.session import disconnect
from penstock.testing import (
    DeadLetter,
    Record,
    TransformationFailedError,
    run_transformation,
)
from penstock.transformations import RAW_COLUMNS

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]
EXAMPLE = re.compile(r"<!-- example: (\S+) -->\n```python\n(.*?)```", re.DOTALL)


def test_good_records_become_rows_and_marked_ones_dead_letters(spark_session: Any) -> None:
    """Nulls, text and bytes arrive as Kafka would have them; each record ends in one place."""
    when = datetime(2026, 3, 4, 23, 30, tzinfo=UTC)
    headers = (("trace", b"1"), ("n", None))
    records: list[Record | str] = [
        '{"id":"a"}',
        Record(b"\xff", timestamp=when, headers=headers),
        Record(None, timestamp=when),
        Record('{"id":"b"}', key="k", partition=4),
    ]
    result = run_transformation(
        transformations.decode,
        records,
        columns=["id", "key", "topic", "partition", "offset"],
        session=spark_session,
    )
    assert result.rows == [
        {"id": "a", "key": None, "topic": "test", "partition": 0, "offset": 0},
        {"id": "b", "key": b"k", "topic": "test", "partition": 4, "offset": 0},
    ]
    assert result.schema == {
        "id": "string",
        "key": "binary",
        "topic": "string",
        "partition": "int",
        "offset": "bigint",
    }
    reason = "not JSON with an id"
    assert result.dead_letters == [
        DeadLetter("test", 0, 1, reason, None, b"\xff", when, headers),
        DeadLetter("test", 0, 2, reason, None, None, when),
    ]


def test_time_headers_and_offsets_are_those_given(spark_session: Any) -> None:
    """The record's time makes the `date` that the table is partitioned by; holes are kept."""
    when = datetime(2026, 3, 4, 23, 30, tzinfo=UTC)
    records = [
        Record("x", topic="a", offset=7, timestamp=when, headers=[("trace", b"1"), ("n", None)]),
        Record("y", topic="a", offset=12, timestamp=when.replace(tzinfo=None)),
        Record("z", topic="b", timestamp=when),
    ]
    result = run_transformation(
        lambda records: records, records, partition_by=["date"], session=spark_session
    )
    places = [(row["topic"], row["offset"]) for row in result.rows]
    assert places == [("a", 7), ("a", 12), ("b", 0)]
    assert {row["timestamp"] for row in result.rows} == {when}
    assert {row["date"] for row in result.rows} == {date(2026, 3, 4)}
    headers = [{"key": "trace", "value": b"1"}, {"key": "n", "value": None}]
    assert [row["headers"] for row in result.rows] == [headers, None, None]


@pytest.mark.parametrize("at", [0, 3, 6])
def test_a_record_that_makes_it_raise_is_named(spark_session: Any, at: int) -> None:
    """Wherever it is in its partition, the message has its place, its value and Spark's error."""
    values: list[str | Record] = ["fine"] * 7
    values[at] = "poison"
    good = [Record("fine", partition=1)] * 3
    with pytest.raises(TransformationFailedError) as failed:
        run_transformation(transformations.fails_on_poison, [*good, *values], session=spark_session)
    said = failed.value.message
    assert f"kit.consumer.transformations:fails_on_poison fails on test-0 at offset {at} " in said
    assert "b'poison'" in said
    assert "poisoned" in said
    assert "_undecodable" in failed.value.remedy


def test_a_python_function_that_cannot_take_null_is_found(spark_session: Any) -> None:
    """What goes wrong inside Spark's Python workers is told from the record as well."""
    with pytest.raises(TransformationFailedError, match=r"at offset 1 \(value None\).*upper"):
        run_transformation(transformations.upper_in_python, ["a", None], session=spark_session)


def test_a_session_whose_server_has_ended_is_not_asked(
    spark_session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Declaring a Python function asks the active session, which is the one of the records."""
    gone = connect.SparkSession("sc://127.0.0.1:1")
    gone.client.set_retry_policies([])
    monkeypatch.setattr(connect.SparkSession, "_default_session", gone)
    monkeypatch.setattr(connect.SparkSession._active_session, "session", gone, raising=False)
    result = run_transformation(transformations.upper_in_python, ["a"], session=spark_session)
    assert [row["text"] for row in result.rows] == ["A"]
    disconnect(gone)


def test_every_record_may_be_marked(spark_session: Any) -> None:
    """All become dead letters."""
    result = run_transformation(transformations.mark_all, ["a", "b"], session=spark_session)
    assert result.rows == []
    assert [letter.value for letter in result.dead_letters] == [b"a", b"b"]


def test_every_record_may_be_marked_with_spark_inside() -> None:
    """The same in a process that has Spark's JVM of its own."""
    program = (
        "from penstock.testing import run_transformation\n"
        "from kit.consumer.transformations import mark_all\n"
        "print(len(run_transformation(mark_all, ['a', 'b']).dead_letters), 'dead letters')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "2 dead letters", done.stderr


def test_what_fails_on_several_records_only_blames_none(spark_session: Any) -> None:
    """Records that are good one by one are not called the culprit."""

    def one_at_a_time(records: Any) -> Any:
        several = records.agg(functions.count("*").alias("several"))
        check = functions.when(
            functions.col("several") > 1, functions.raise_error(functions.lit("too many"))
        )
        checked = records.crossJoin(several).withColumn("checked", check.cast("string"))
        return checked.drop("several")

    with pytest.raises(TransformationFailedError) as failed:
        run_transformation(one_at_a_time, ["a", "b"], session=spark_session)
    assert "too many" in failed.value.message
    assert "at offset" not in failed.value.message


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (
            transformations.raises,
            "transformations:raises raised ValueError: no such thing",
        ),
        (transformations.gives_nothing, "returned NoneType, no DataFrame"),
        (lambda records: records.select("id"), "`id` cannot be resolved"),
    ],
)
def test_what_fails_without_any_record_blames_none(
    spark_session: Any, function: Any, said: str
) -> None:
    """The function itself is wrong: the message has its error and names no record."""
    with pytest.raises(TransformationFailedError) as failed:
        run_transformation(function, ["x"], session=spark_session)
    assert said in failed.value.message
    assert "at offset" not in failed.value.message


def test_offsets_go_up_within_a_partition(spark_session: Any) -> None:
    """Kafka never has an offset twice, so a test cannot give it twice."""
    with pytest.raises(ValueError, match="test-0: offset 3 comes after offset 3"):
        run_transformation(
            transformations.decode,
            [Record("x", offset=3), Record("y", offset=3)],
            session=spark_session,
        )


@pytest.mark.broker
def test_given_records_look_as_those_of_kafka(
    make_carrier: Callable[..., Carrier], spark_session: Any
) -> None:
    """The same record from a real broker and from a test: the same columns, types and values."""
    carrier, topic = make_carrier(), new_topic_name("same")
    carrier.kafka.create_topic(topic, partitions=1)
    produce(carrier.settings.kafka, topic, {0: [b"value", None]})
    raw = read_ranges(spark_session, carrier.settings.kafka, carrier.plan(topic), 1)
    given = spark_session.createDataFrame([], RAW_SCHEMA)
    assert tuple(raw.columns) == RAW_COLUMNS == tuple(given.columns)
    assert [one.dataType for one in raw.schema] == [one.dataType for one in given.schema]
    real = [row.asDict(recursive=True) for row in raw.orderBy("offset").collect()]
    records = [
        Record(row["value"], row["key"], topic, 0, None, row["timestamp"].astimezone(UTC), headers)
        for row in real
        for headers in [[(one["key"], bytes(one["value"])) for one in row["headers"]]]
    ]
    trial = run_transformation(lambda records: records, records, session=spark_session)
    for row in real:
        row["timestamp"] = row["timestamp"].astimezone(UTC)
    assert trial.rows == real


@pytest.mark.timeout(300)  # starts a Spark of its own
def test_the_example_of_the_docs_passes_on_a_spark_of_its_own(tmp_path: Path) -> None:
    """docs/transformations.md as written: its modules and their tests, with nothing fetched."""
    text = (ROOT / "docs/transformations.md").read_text(encoding="utf-8")
    files = dict(EXAMPLE.findall(text))
    tests = {"test_orders.py", "test_visits.py"}
    assert set(files) == {"shop/orders.py", "shop/visits.py", *tests}
    (tmp_path / "shop").mkdir()
    for name, code in files.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n", encoding="utf-8")
    cache = make_own_cache(tmp_path / "no-jars", shares_jars=False)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"],
        cwd=tmp_path,
        env={**os.environ, "PENSTOCK_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
