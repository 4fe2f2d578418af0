"""What `penstock lake compact` tells, on real tables; no Spark."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import Result

from kit.program import invoked
from penstock.cli.lake import upkeep_line
from penstock.model import TopicPartition
from penstock.pipeline import LakeRefusedError
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.upkeep import UpkeepReport
from penstock.pipeline.written_files import written_files
from penstock.settings.sections import LakeSettings

SCHEMA = '{"type":"struct","fields":[{"name":"n","type":"long","nullable":true,"metadata":{}}]}'
FILES = 3


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A lake with one table of three small files."""
    lake = LakeSettings(root=str(tmp_path), group="g")
    table = LakeTable(lake, "orders")
    table.open_for(SCHEMA, ())
    for number in range(FILES):
        folder = f"data/g/1-1/{number + 1}.id.0.{number or 'new'}"
        path = Path(table.storage.uri) / folder / "topic-id" / "part-0.parquet"
        path.parent.mkdir(parents=True)
        pa.parquet.write_table(pa.table({"n": [number]}), path)
        move = LedgerMove(TopicPartition("orders", 0), "g/id/0", number or None, number + 1)
        table.commit([move], written_files(table.storage, folder), batch=folder)
    return tmp_path


def compacted(root: Path, *arguments: str) -> Result:
    given = ("--set", f"lake.root={root}", "--set", "lake.group=g")
    return invoked("lake", "compact", *given, *arguments)


def test_the_columns_have_names_and_units(root: Path) -> None:
    """Files before and after, what was rewritten as a size, orphans and what has expired."""
    answer = compacted(root, "--set", "lake.removed_file_retention=0s")
    assert answer.exit_code == 0
    head, row = answer.stdout.splitlines()
    titles = ("table", "files before", "files after", "rewritten", "orphans", "expired")
    places = [head.index(title) for title in titles]
    assert places == sorted(places)
    cells = [row[a:b].strip() for a, b in zip(places, [*places[1:], None], strict=True)]
    assert cells[:3] == ["orders", str(FILES), "1"]
    assert cells[3].endswith(("B", "kB"))
    assert cells[4:] == ["0", "0"]
    assert "orders: compacted" in answer.stderr


def test_a_broken_table_hides_nothing_of_the_others(root: Path) -> None:
    """What was done is told all the same, and then what went wrong."""
    log = root / "clicks" / "_delta_log"
    log.mkdir(parents=True)
    (root / "clicks" / "data" / "g").mkdir(parents=True)
    (log / "00000000000000000000.json").write_text("not a log\n", encoding="utf-8")
    answer = compacted(root)
    assert isinstance(answer.exception, LakeRefusedError)
    assert "clicks" in answer.exception.message
    assert "orders" in answer.stdout


def test_a_table_that_is_left_alone_says_why() -> None:
    """And joins that others overtook are counted."""
    report = UpkeepReport("orders", 3, 1, 10, 0, 0)
    assert upkeep_line(report) == "orders: compacted"
    left = UpkeepReport("orders", 3, 3, 0, 0, 0, left_alone="it has deletion vectors")
    assert upkeep_line(left) == "orders: not compacted, because it has deletion vectors"
    refused = UpkeepReport("orders", 3, 2, 10, 0, 0, joins_refused=1)
    assert upkeep_line(refused).endswith("1 join dropped, whose files were replaced")
