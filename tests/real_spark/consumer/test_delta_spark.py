"""delta-spark and deltalake change a table while a group writes it and our upkeep joins its files.

The parameters are those that docs/lake.md asks for: VACUUM keeps files for longer than a batch or
a reader takes, and deltalake's own compaction runs at no other tool's time.
"""

import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from kit.consumer.consumers import Group, MakeGroup, add_records, make_topic, wait_for, wait_rows
from kit.in_a_loop import in_a_loop
from kit.lake.delta_spark import DeltaSpark, DeltaSparkError
from penstock.pipeline.upkeep import UpkeepReport, keep_up
from penstock.verification import carried_so_far, verify

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]
PARTITIONS = 2
AT_ONCE = 20
# What a batch, a reader here and a statement, which dates its removals by its own start, take
# together is far less. VACUUM rounds its RETAIN to whole hours; the table's property has seconds.
KEPT = "interval 60 seconds"
HELD_S = 8.0
# What each of the two tools deletes: the last digit of the offsets.
SPARKS, DELTALAKES = 3, 7
ENOUGH_S = 300.0
Places = list[tuple[int, int]]


def _read_by_polars(place: str) -> list[dict[str, Any]]:
    value = pl.col("value").cast(pl.String)
    return pl.scan_delta(place).select("partition", "offset", value).collect().to_dicts()


def _read_by_spark(spark: DeltaSpark, place: str) -> list[dict[str, Any]]:
    columns = "partition, offset, cast(value as string) as value"
    return spark.sql(f"SELECT {columns} FROM delta.`{place}`")  # noqa: S608 -- the test's own


def _assert_read(spark: DeltaSpark, place: str, offsets: list[int]) -> None:
    """Two independent readers find exactly these offsets of each partition, with their values."""
    left = [(one, at) for one in range(PARTITIONS) for at in offsets]
    for rows in (_read_by_spark(spark, place), _read_by_polars(place)):
        assert _places(rows) == left
        # Every round writes the same values again.
        assert all(row["value"] == f"value {row['offset'] % AT_ONCE} " for row in rows)


def _delete(spark: DeltaSpark, place: str, digit: int) -> None:
    spark.sql(f"DELETE FROM delta.`{place}` WHERE offset % 10 = {digit}")  # noqa: S608 -- as above


def _places(rows: list[dict[str, Any]]) -> Places:
    return sorted((row["partition"], row["offset"]) for row in rows)


def _actions(place: str) -> list[dict[str, Any]]:
    logs = sorted(Path(place, "_delta_log").glob("*.json"))
    texts = [log.read_text(encoding="utf-8") for log in logs]
    return [json.loads(line) for text in texts for line in text.splitlines()]


@dataclass
class Tools:
    """Statements of other tools on one table; who lost a race says so and has changed nothing."""

    spark: DeltaSpark
    place: str
    # deltalake does not see that a file it replaces was replaced meanwhile (test_compaction.py).
    one_compaction: threading.Lock = field(default_factory=threading.Lock)
    done: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    longest_s: float = 1.0

    def run_all(self) -> None:
        spark, table = self.spark, f"delta.`{self.place}`"
        self._run("DELETE", lambda: _delete(spark, self.place, SPARKS))
        self._run("OPTIMIZE", lambda: spark.sql(f"OPTIMIZE {table}"))
        self._run("VACUUM", lambda: spark.sql(f"VACUUM {table}"))
        with self.one_compaction:
            own = DeltaTable(self.place)
            self._run("delete", lambda: own.delete(f"offset % 10 = {DELTALAKES}"))
            self._run("compact", own.optimize.compact)

    def _run(self, name: str, act: Callable[[], object]) -> None:
        began = time.monotonic()
        try:
            act()
        except (DeltaSparkError, DeltaError) as error:
            if "oncurrent" not in str(error) and "onflict" not in str(error):
                raise
            self.lost[name] += 1
        else:
            self.done[name] += 1
        self.longest_s = max(self.longest_s, time.monotonic() - began)

    def has_enough(self) -> bool:
        names = ("DELETE", "OPTIMIZE", "VACUUM", "delete", "compact")
        return all(self.done[name] for name in names) and self.files_vacuumed() > 0

    def files_vacuumed(self) -> int:
        """Replaced files that are gone, whether VACUUM or our upkeep came first."""
        removed = [
            unquote(one["remove"]["path"]) for one in _actions(self.place) if "remove" in one
        ]
        return sum(not Path(self.place, path).exists() for path in removed)


def _hold_a_version(place: str) -> None:
    """Read a version, and again after other tools had time to replace its files."""
    held = DeltaTable(place)
    before = _places(held.to_pyarrow_table(columns=["partition", "offset"]).to_pylist())
    time.sleep(HELD_S)
    again = DeltaTable(place, version=held.version())
    rows = again.to_pyarrow_table(columns=["partition", "offset"]).to_pylist()
    assert _places(rows) == before, "an old version changed"


def _wait_until_carried(group: Group, topic: str, records: int) -> None:
    ends = [records] * PARTITIONS
    wait_for(
        "all records",
        lambda: list(carried_so_far(group.settings, [topic]).values()) == ends,
    )
    assert [one.ledger for one in verify(group.settings, [topic]).partitions] == ends


def test_other_tools_at_work_while_a_group_runs(
    make_group: MakeGroup, delta_spark: DeltaSpark
) -> None:
    """Every record that was not deleted is there once; an old version stays for who reads it."""
    group = make_group(lake={"compact_period": "0s"})
    topic, places = make_topic(group, "tools", PARTITIONS, AT_ONCE)
    place = f"{group.settings.lake.root}/{topic}"
    for number, partition in enumerate(places, start=1):
        group.start(number)
        group.command_start(number, [partition])
    wait_rows(group, topic, AT_ONCE * PARTITIONS)
    tools = Tools(delta_spark, place)
    kept = f"'delta.deletedFileRetentionDuration' = '{KEPT}'"
    delta_spark.sql(f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ({kept})")
    rounds = [AT_ONCE]
    reports: list[UpkeepReport] = []

    def write() -> None:
        add_records(group, topic, PARTITIONS, AT_ONCE)
        rounds.append(AT_ONCE)

    def keep_ours_up() -> None:
        with tools.one_compaction:
            reports.extend(keep_up(group.settings.lake, [topic]))

    deadline = time.monotonic() + ENOUGH_S
    with ExitStack() as stack:
        # A DELETE is refused by every append in between: there must be time for it now and then.
        stack.enter_context(in_a_loop(write, lambda: 2 * tools.longest_s))
        stack.enter_context(in_a_loop(keep_ours_up, lambda: 1.0))
        stack.enter_context(in_a_loop(lambda: _hold_a_version(place), lambda: 0.1))
        while not tools.has_enough():
            assert time.monotonic() < deadline, (tools.done, tools.lost)
            tools.run_all()
    records = sum(rounds)
    _wait_until_carried(group, topic, records)
    assert sum(one.bytes_rewritten for one in reports), "our upkeep joined nothing"
    _assert_interleaved(place)
    _delete(delta_spark, place, SPARKS)
    _delete(delta_spark, place, DELTALAKES)
    left = [at for at in range(records) if at % 10 not in {SPARKS, DELTALAKES}]
    _assert_read(delta_spark, place, left)
    for verdict in verify(group.settings, [topic]).partitions:
        assert verdict.lost == records - len(left)
        assert (verdict.duplicated, verdict.out_of_place, verdict.changed) == (0, 0, 0)


def _assert_interleaved(place: str) -> None:
    """The group committed between the commits of the other tools, or the test shows nothing."""
    commits = [one["commitInfo"] for one in _actions(place) if "commitInfo" in one]
    ours = [bool(one.get("penstockRanges")) for one in commits]
    changes = sum(before != after for before, after in itertools.pairwise(ours))
    assert changes >= 8, ours


def test_rows_deleted_by_deletion_vectors_stay_deleted(
    make_group: MakeGroup, delta_spark: DeltaSpark
) -> None:
    """The group goes on writing, our upkeep leaves the table alone, and readers agree."""
    group = make_group()
    topic, places = make_topic(group, "vectors", PARTITIONS, AT_ONCE)
    place = f"{group.settings.lake.root}/{topic}"
    table = f"delta.`{place}`"
    group.start(1)
    group.command_start(1, places)
    wait_rows(group, topic, AT_ONCE * PARTITIONS)
    properties = "('delta.enableDeletionVectors' = 'true')"
    delta_spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES {properties}")
    _delete(delta_spark, place, SPARKS)
    assert any((one.get("add") or {}).get("deletionVector") for one in _actions(place))
    for _ in range(2):
        add_records(group, topic, PARTITIONS, AT_ONCE)
        (report,) = keep_up(group.settings.lake, [topic])
        assert report.left_alone == "the table uses deletionVectors"
    # verify cannot read a table with deletion vectors, and says so.
    wait_for("the rest", lambda: group.group_offsets(places) == [3 * AT_ONCE] * PARTITIONS)
    everything = range(3 * AT_ONCE)
    _assert_read(
        delta_spark, place, [at for at in everything if at >= AT_ONCE or at % 10 != SPARKS]
    )
    _delete(delta_spark, place, SPARKS)
    delta_spark.sql(f"REORG TABLE {table} APPLY (PURGE)")
    left = [at for at in everything if at % 10 != SPARKS]
    _assert_read(delta_spark, place, left)
    for verdict in verify(group.settings, [topic]).partitions:
        assert verdict.lost == len(everything) - len(left)
        assert (verdict.duplicated, verdict.out_of_place, verdict.changed) == (0, 0, 0)
