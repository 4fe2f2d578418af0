"""Streams of speeds: read from CSV, with line and column of every mistake, or generated."""

from pathlib import Path

import pytest

from kit.packing.stream_files import write_stream
from penstock.errors import UsageError
from penstock.laboratory.packing_replay.generate import Kind, Recipe, generate
from penstock.laboratory.packing_replay.stream import read_stream


def csv_file(folder: Path, text: str) -> Path:
    path = folder / "speeds.csv"
    path.write_text(text, encoding="latin-1")
    return path


def test_reads_what_it_writes(tmp_path: Path) -> None:
    """A written stream reads back; whole numbers stay whole, and blanks are ignored."""
    path = csv_file(tmp_path, "orders-0, my-clicks-7\n1, 2.5\r\n9007199254740993,0\n\n")
    stream = read_stream(path)
    assert [str(partition) for partition in stream.partitions] == ["orders-0", "my-clicks-7"]
    assert list(stream.rows) == [(1, 2.5), (9007199254740993, 0)]
    write_stream(stream, path)
    assert read_stream(path) == stream


def test_ten_thousand_columns_are_read(tmp_path: Path) -> None:
    """A stream of ten thousand partitions is read."""
    header = ",".join(f"orders-{n}" for n in range(10_000))
    stream = read_stream(csv_file(tmp_path, f"{header}\n{','.join(['1'] * 10_000)}\n"))
    assert len(stream.partitions) == 10_000


@pytest.mark.parametrize(
    ("text", "explanation"),
    [
        ("", "speeds.csv is empty"),
        ("\n1\n", "line 1, column 1: the header names no partition"),
        ("orders-0\n", "has a header but no measurement"),
        ("orders\n1\n", "line 1, column 1: expected topic-partition"),
        ("orders-0,a b-1\n1,1\n", "line 1, column 2: not a Kafka topic name"),
        ("a-0,b-0,a-0\n1,1,1\n", "line 1, column 3: a-0 is already in column 1"),
        ("a-0,b-0\n1,1\n1\n", "line 3, column 2: the row ends after 1 of 2 speeds; b-0"),
        ("a-0\n" + ",".join("1" * 10_000), "line 2, column 2: the row has 10000 speeds"),
        ("a-0\n1\n\n2\n", "line 3, column 1: the row is empty"),
        ("a-0,b-0\n1,nan\n", "line 2, column 2: b-0: a speed is a finite number >= 0, got 'nan'"),
        ("a-0\ninf\n", "line 2, column 1: a-0: a speed is a finite number >= 0, got 'inf'"),
        ("a-0\n-1\n", "line 2, column 1: a-0: a speed is a finite number >= 0, got '-1'"),
        ("a-0\nfast\n", "line 2, column 1: a-0: a speed is a number, got 'fast'"),
        ("a-0\n1_000\n", "line 2, column 1: a-0: a speed is a number"),
        ("a-0,b-0\n1,\n", "line 2, column 2: b-0: a speed is a number, got ''"),
        ("a-0\n1e19\n", "line 2, column 1: a-0: a speed is at most"),
        ("a-0\n" + "9" * 5000, "line 2, column 1: a-0: a speed is"),
        ('a-0\n"1\n', "line 2, column 1: not CSV"),
        ("a-0\n\xff\n", "is not UTF-8 text"),
    ],
)
def test_every_mistake_is_one_error_with_line_and_column(
    tmp_path: Path, text: str, explanation: str
) -> None:
    """The error is one short sentence, with a remedy that describes a stream."""
    with pytest.raises(UsageError) as raised:
        read_stream(csv_file(tmp_path, text))
    assert explanation in raised.value.message
    assert len(raised.value.message) < len(str(tmp_path)) + 250


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file and a folder are errors."""
    with pytest.raises(UsageError, match="No such file"):
        read_stream(tmp_path / "missing.csv")
    with pytest.raises(UsageError, match="cannot read"):
        read_stream(tmp_path)


def test_too_many_columns_are_refused(tmp_path: Path) -> None:
    """The number of columns is limited."""
    header = ",".join(f"o-{n}" for n in range(100_001))
    with pytest.raises(UsageError, match="line 1, column 100001: more than 100000 partitions"):
        read_stream(csv_file(tmp_path, f"{header}\n"))


@pytest.mark.parametrize("kind", list(Kind))
def test_generated_streams_keep_to_their_recipe(kind: Kind) -> None:
    """A stream has the requested size, stays within 0 and the capacity, and is repeatable."""
    recipe = Recipe(kind, partitions=30, delta=4, measurements=50, seed=3)
    stream = generate(recipe, 2_000_000)
    assert (len(stream), len(stream.partitions)) == (50, 30)
    assert all(0 <= speed <= 2_000_000 for row in stream.rows for speed in row)
    assert generate(recipe, 2_000_000) == stream
    assert generate(Recipe(kind, 30, 4, 50, seed=4), 2_000_000) != stream


def test_the_walk_is_the_published_one() -> None:
    """The walk has whole percents, steps within delta and the requested start."""
    stream = generate(Recipe(Kind.WALK, 200, 5, 100, 1, start="50"))
    assert set(stream.rows[0]) == {50}
    steps = {
        after - before
        for earlier, later in zip(stream.rows, stream.rows[1:], strict=False)
        for before, after in zip(earlier, later, strict=True)
    }
    assert steps == set(range(-5, 6))
    uniform = generate(Recipe(Kind.WALK, 2000, 5, 1, 1)).rows[0]
    assert (min(uniform), max(uniform)) == (0, 100)


@pytest.mark.parametrize(
    "wrong",
    [
        {"partitions": 0},
        {"delta": -1},
        {"delta": 101},
        {"measurements": 0},
        {"seed": -1},
        {"start": "many"},
        {"start": "101"},
    ],
)
def test_a_wrong_recipe_is_refused(wrong: dict[str, object]) -> None:
    """The error names the field."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Recipe(**wrong)  # type: ignore[arg-type]  # the wrong value is the test
