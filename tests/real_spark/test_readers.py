"""Three readers see the same rows in a compacted table, and skip files by their statistics."""

import random
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from kit.lake.delta_spark import DeltaSpark
from kit.lake.lake import Carrier, new_topic_name, produce
from penstock.pipeline.lake_commit import LakeTable
from penstock.pipeline.upkeep import UpkeepWork, keep_up_table

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300)]
BATCHES, PARTITIONS, VALUE_BYTES = 24, 2, 100_000
# Of one partition: a record for each batch.
FIRST = 3


def _compacted(make_carrier: Callable[..., Carrier]) -> str:
    """A table of one file for each calm batch, whose files were joined to 1 MiB and more."""
    topic = new_topic_name("read")
    own = {"file_size": "1MiB", "sort_by": ["partition", "offset"]}
    carrier = make_carrier(tables={topic: own})
    carrier.kafka.create_topic(topic, partitions=PARTITIONS)
    chance = random.Random(1)
    values = [chance.randbytes(VALUE_BYTES) for _ in range(BATCHES)]
    produce(carrier.settings.kafka, topic, dict.fromkeys(range(PARTITIONS), values))
    while planned := carrier.plan(topic, at_most=1):
        result = carrier.pipeline.carry(planned, writer=carrier.writer, is_calm=True)
        assert not result.failures
        assert result.files == 1, "a calm batch is one file, not one for each task"
    place = f"{carrier.settings.lake.root}/{topic}"
    assert len(DeltaTable(place).file_uris()) == BATCHES
    lake = carrier.settings.lake
    report = keep_up_table(lake, LakeTable(lake, topic), UpkeepWork(finishes_all=False))
    assert 3 <= report.files_after <= BATCHES / 3
    return place


def test_readers_agree_and_skip_files(
    make_carrier: Callable[..., Carrier], delta_spark: DeltaSpark
) -> None:
    """delta-spark, deltalake and Polars: the same rows, and all but one file left out."""
    place = _compacted(make_carrier)
    every = sorted((one, at) for one in range(PARTITIONS) for at in range(BATCHES))
    columns = ["partition", "offset"]
    by_spark = delta_spark.scan(place, "true", columns)
    assert sorted((row["partition"], row["offset"]) for row in by_spark.rows) == every
    table = DeltaTable(place)
    files = len(table.file_uris())
    assert by_spark.files_read == files
    rows = table.to_pyarrow_table(columns=columns).to_pylist()
    assert sorted((row["partition"], row["offset"]) for row in rows) == every
    assert sorted(pl.scan_delta(place).select(columns).collect().rows()) == every

    wanted = sorted((one, at) for one in range(PARTITIONS) for at in range(FIRST))
    by_spark = delta_spark.scan(place, f"offset < {FIRST}", columns)
    assert sorted((row["partition"], row["offset"]) for row in by_spark.rows) == wanted
    assert by_spark.files_read == 1, f"it could skip {files - 1} of {files} files"
    is_first = pc.field("offset") < FIRST
    fragments = list(table.to_pyarrow_dataset().get_fragments(filter=is_first))
    assert len(fragments) == 1
    _hide_all_but(Path(place), fragments[0].path)
    found = pl.scan_delta(place).filter(pl.col("offset") < FIRST).select(columns).collect()
    assert sorted(found.rows()) == wanted, "it did not need the files that are hidden"


def _hide_all_but(place: Path, kept: str) -> None:
    for uri in DeltaTable(place).file_uris():
        if not uri.endswith(kept.lstrip("/")):
            Path(uri).rename(f"{uri}.hidden")
