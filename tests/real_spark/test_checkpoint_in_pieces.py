"""delta-spark reads a table whose checkpoint was made piece by piece, and skips files by it."""

import time
from pathlib import Path

import pytest

from kit.lake.delta_spark import DeltaSpark
from kit.lake.racing_writer import carry, open_table
from penstock.pipeline.stream_checkpoint import make_next_checkpoint

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def test_delta_spark_reads_a_checkpoint_in_pieces(tmp_path: Path, delta_spark: DeltaSpark) -> None:
    """It has nothing but the checkpoint, with its statistics."""
    table, place = open_table(str(tmp_path)), tmp_path / "orders"
    for number in range(6):
        assert carry(table, number % 3, 4, f"{number}")

    def offsets(condition: str) -> tuple[list[tuple[int, int]], int]:
        make_next_checkpoint(table.storage, time.time_ns() // 1_000_000)
        for entry in sorted((place / "_delta_log").glob("*.json"))[:-1]:
            entry.unlink()
        found = delta_spark.scan(str(place), condition, ["partition", "offset"])
        return sorted((row["partition"], row["offset"]) for row in found.rows), found.files_read

    every = [(partition, offset) for partition in range(3) for offset in range(8)]
    assert offsets("true") == (every, 6)
    assert offsets("partition = 1 AND offset < 4") == ([(1, one) for one in range(4)], 1)
