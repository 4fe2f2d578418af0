"""Shapes, targets and records of the load generator, without a broker."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import UsageError
from penstock.laboratory.load import RecordForm, parse_shape, parse_target, replay_targets
from penstock.laboratory.load.records import RecordMaker
from penstock.model import TopicPartition

COUNTS = {"orders": 4}


@pytest.mark.parametrize(
    ("text", "speeds"),
    [
        ("1MB/s", {0: 1e6, 100: 1e6}),
        ("constant:5kB/s", {0: 5e3}),
        ("step:1MB/s,4MB/s,30s", {0: 1e6, 29.9: 1e6, 30: 4e6, 99: 4e6}),
        ("ramp:0MB/s,10MB/s,10s", {0: 0, 5: 5e6, 10: 1e7, 50: 1e7}),
        ("sine:10kB/s,4kB/s,20s", {0: 1e4, 5: 1.4e4, 15: 6e3}),
        ("sine:1kB/s,4kB/s,20s", {15: 0}),
        ("burst:1kB/s,9kB/s,10s,3s", {0: 1e3, 6.9: 1e3, 7: 9e3, 9.9: 9e3, 10: 1e3}),
    ],
)
def test_shapes_have_the_expected_speeds(text: str, speeds: dict[float, float]) -> None:
    """Each shape has the expected speed at the expected times."""
    shape = parse_shape(text, seed="s")
    for elapsed_s, speed in speeds.items():
        assert shape.speed_bytes_per_s(elapsed_s) == pytest.approx(speed)


@given(st.floats(0, 500), st.text(max_size=5))
def test_a_walk_is_repeatable_and_bounded(elapsed_s: float, seed: str) -> None:
    """The same seed gives the same walk in any order of calls, and never a negative speed."""
    once, again = (parse_shape("walk:1MB/s,200kB/s,1s", seed=seed) for _ in range(2))
    again.speed_bytes_per_s(500)
    speed = once.speed_bytes_per_s(elapsed_s)
    assert 0 <= speed <= 4e6
    assert speed == again.speed_bytes_per_s(elapsed_s)
    assert once.speed_bytes_per_s(0) == 1e6


def test_walks_of_different_partitions_differ() -> None:
    """The partition is part of the seed."""
    targets = parse_target("orders=walk:1MB/s,200kB/s,1s", COUNTS, seed=1)
    assert len({target.shape.speed_bytes_per_s(20) for target in targets}) == 4


@pytest.mark.parametrize(
    "text",
    [
        "wiggle:1MB/s",
        "step:1MB/s",
        "ramp:1MB/s,2MB/s,0s",
        "burst:1B/s,2B/s,1s,2s",
        "fast",
        "step:a,b,c",
    ],
)
def test_wrong_shapes_are_refused(text: str) -> None:
    """Unknown kinds, missing parts and impossible times are refused."""
    with pytest.raises(UsageError, match="orders="):
        parse_target(f"orders={text}", COUNTS, seed=0)


def numbers(text: str) -> list[int]:
    return [target.partition.partition for target in parse_target(text, COUNTS, seed=0)]


def test_targets_name_partitions() -> None:
    """A target names all partitions of a topic, one, a range or several."""
    assert numbers("orders=1MB/s") == [0, 1, 2, 3]
    assert numbers("orders:2=1MB/s") == [2]
    assert numbers("orders:0-1,3=1MB/s") == [0, 1, 3]


@pytest.mark.parametrize(
    ("text", "explanation"),
    [
        ("orders", "expected TOPIC"),
        ("nothing=1MB/s", "There is no topic 'nothing'"),
        ("orders:7=1MB/s", "there is no partition 7; the topic has 4"),
        ("orders:x=1MB/s", "not a partition number"),
        ("orders:1-x=1MB/s", "not a partition number"),
    ],
)
def test_targets_that_do_not_exist_are_refused(text: str, explanation: str) -> None:
    """A target that does not exist is refused with the reason."""
    with pytest.raises(UsageError, match=explanation):
        parse_target(text, COUNTS, seed=0)


def test_speeds_are_replayed_from_a_file(tmp_path: Path) -> None:
    """Each row lasts for its period; the last one stays."""
    file = tmp_path / "speeds.csv"
    file.write_text("orders-0,clicks-7\n10,20\n30,0\n", encoding="utf-8")
    first, second = replay_targets(file, every_s=2)
    assert first.partition == TopicPartition("orders", 0)
    assert second.partition == TopicPartition("clicks", 7)
    assert [first.shape.speed_bytes_per_s(t) for t in (0, 1.9, 2, 99)] == [10, 10, 30, 30]
    assert second.shape.speed_bytes_per_s(3) == 0


@pytest.mark.parametrize(
    ("content", "explanation"),
    [
        ("", "a header and at least one row"),
        ("orders-0\n", "a header and at least one row"),
        ("orders-0,x\n1,2\n", "line 1, column 2"),
        ("orders-0,orders-1\n1,2\n1\n", "line 3: 1 columns, expected 2"),
        ("orders-0\nfast\n", "line 2, column 1: 'fast' is not a speed"),
        ("orders-0\nnan\n", "'nan' is not a speed"),
        ("orders-0\n-1\n", "'-1' is not a speed"),
        ("orders-0\ninf\n", "'inf' is not a speed"),
    ],
)
def test_wrong_replay_files_are_errors_with_line_and_column(
    tmp_path: Path, content: str, explanation: str
) -> None:
    """The error names the line and column of the first mistake."""
    file = tmp_path / "speeds.csv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=explanation):
        replay_targets(file, every_s=1)


@settings(deadline=None)  # a busy machine is no reason to fail
@given(
    size=st.integers(128, 5000),
    keys=st.one_of(st.sampled_from(["none", "id"]), st.integers(1, 9)),
    number=st.integers(0, 10**9),
    compressible=st.booleans(),
)
def test_records_have_the_size_asked_for_and_parse(
    size: int, keys: object, number: int, compressible: bool
) -> None:
    """Key and value together have the requested size, and the value is JSON with the id."""
    form = RecordForm(size, keys, compressible)  # type: ignore[arg-type]  # drawn from the allowed
    key, value = RecordMaker(form, "run", seed=1).record(TopicPartition("t", 3), number, 17)
    content = json.loads(value)
    assert content["id"] == f"run-t-3-{number}"
    assert content["at_ms"] == 17
    assert len(value) + len(key or b"") == size


def test_a_large_record_is_padded_over() -> None:
    """A record larger than the stored padding has the requested size."""
    _, value = RecordMaker(RecordForm(3_000_000), "r", seed=1).record(TopicPartition("t", 0), 5, 1)
    assert len(value) == 3_000_000


def test_a_long_topic_name_only_makes_the_record_larger() -> None:
    """The id is never cut, even if the record becomes larger than requested."""
    partition = TopicPartition("t" * 249, 0)
    _, value = RecordMaker(RecordForm(128), "run", seed=1).record(partition, 1, 1)
    assert json.loads(value)["id"] == f"run-{partition}-1"


@pytest.mark.parametrize(("size", "keys"), [(10, "none"), (1000, 0)])
def test_forms_that_cannot_be_are_refused(size: int, keys: object) -> None:
    """A size too small for the id, and fewer than one key, are refused."""
    with pytest.raises(ValueError, match="at least"):
        RecordForm(size, keys)  # type: ignore[arg-type]  # wrong on purpose
