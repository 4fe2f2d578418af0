"""The lake's disk fills in the middle of a batch, a commit or a compaction."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from kit.lake.lake import Carrier, new_topic_name, produce
from penstock.pipeline import LakeRefusedError, compaction
from penstock.pipeline.upkeep import keep_up

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300)]
MakeCarrier = Callable[..., Carrier]
VALUE_BYTES = 20_000


def _fill(disk: Path, left_bytes: int = 0) -> None:
    """Take all free space but so much."""
    state = os.statvfs(disk)
    with (disk / "filler").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, state.f_bavail * state.f_frsize - left_bytes)


def _free(disk: Path) -> None:
    (disk / "filler").unlink()


def _offsets(carrier: Carrier, topic: str) -> list[int]:
    table = DeltaTable(f"{carrier.settings.lake.root}/{topic}").to_pyarrow_table()
    return sorted(table["offset"].to_pylist())


def _half_carried(
    make_carrier: MakeCarrier, disk: Path, *, pass_through: bool = True, function: str = ""
) -> tuple[Carrier, str]:
    """A topic of ten records, of which four are in the lake, each by a commit of its own."""
    topic = new_topic_name("disk")
    carrier = make_carrier(
        root=str(disk),
        compression="uncompressed",
        checkpoint_commits=1,
        tables={topic: {"transformation": function}},
    )
    if not pass_through:
        spark = carrier.settings.spark.model_copy(update={"pass_through": False})
        settings = carrier.settings.model_copy(update={"spark": spark})
        carrier = Carrier(settings, carrier.session, carrier.writer)
    carrier.kafka.create_topic(topic, partitions=1)
    produce(carrier.settings.kafka, topic, {0: [os.urandom(VALUE_BYTES) for _ in range(10)]})
    for _ in range(4):
        assert not carrier.carry(carrier.plan(topic, at_most=1)).failures
    return carrier, topic


@pytest.mark.parametrize("pass_through", [True, False], ids=["pass-through", "connector"])
@pytest.mark.parametrize(
    ("point", "left_bytes"),
    # 8 KiB hold a commit and no checkpoint, which follows each commit here.
    [
        ("planned", 0),
        ("planned", 8192),
        ("files-written", 0),
        ("before-commit", 0),
        ("before-commit", 8192),
    ],
)
def test_a_disk_that_fills_during_a_batch(
    make_carrier: MakeCarrier, small_disk: Path, point: str, left_bytes: int, pass_through: bool
) -> None:
    """What is in the table stays readable and whole; with space again it goes on, exact."""
    carrier, topic = _half_carried(make_carrier, small_disk, pass_through=pass_through)

    def fill(passed: str) -> None:
        if passed == point and not (small_disk / "filler").exists():
            _fill(small_disk, left_bytes)

    carrier.pipeline._at_point = fill
    result = carrier.carry_all(topic)
    for failure in result.failures.values():
        assert isinstance(failure, LakeRefusedError), failure
    assert result.failures or left_bytes, "the disk was full, and it was not noticed"
    assert _offsets(carrier, topic) in ([*range(4)], [*range(10)])
    carrier.pipeline._at_point = lambda _: None
    _free(small_disk)
    assert not carrier.carry_all(topic).failures
    assert _offsets(carrier, topic) == [*range(10)]
    assert carrier.verify(topic).is_exact


def test_a_disk_that_fills_between_dead_letters_and_their_table(
    make_carrier: MakeCarrier, small_disk: Path
) -> None:
    """The letters are in, the offsets are not: afterwards every record is in one place."""
    function = "kit.consumer.transformations:decode"
    carrier, topic = _half_carried(make_carrier, small_disk, function=function)

    def fill(passed: str) -> None:
        if passed == "dead-letters-committed":
            _fill(small_disk)

    carrier.pipeline._at_point = fill
    (failure,) = carrier.carry_all(topic).failures.values()
    assert isinstance(failure, LakeRefusedError)
    carrier.pipeline._at_point = lambda _: None
    _free(small_disk)
    assert not carrier.carry_all(topic).failures
    (verdict,) = carrier.verify(topic).partitions
    assert verdict.is_exact
    assert (verdict.ledger, verdict.dead_letters) == (10, 10)


@pytest.mark.parametrize("moment", ["before-joining", "before-commit"])
@pytest.mark.parametrize("left_bytes", [0, 8192])
def test_a_disk_that_fills_during_a_compaction(
    make_carrier: MakeCarrier,
    small_disk: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    left_bytes: int,
) -> None:
    """No row is lost or doubled; the next compaction joins the files, and the writer goes on."""
    carrier, topic = _half_carried(make_carrier, small_disk)
    join = compaction._join

    def joined(*given: Any) -> Any:
        if moment == "before-joining":
            _fill(small_disk, left_bytes)
        written = join(*given)
        if moment == "before-commit":
            _fill(small_disk, left_bytes)
        return written

    with monkeypatch.context() as patched:
        patched.setattr(compaction, "_join", joined)
        with pytest.raises(LakeRefusedError):
            list(keep_up(carrier.settings.lake))
    assert _offsets(carrier, topic) == [*range(4)]
    _free(small_disk)
    (report,) = keep_up(carrier.settings.lake)
    assert report.files_after == 1
    assert not carrier.carry_all(topic).failures
    assert _offsets(carrier, topic) == [*range(10)]
    assert carrier.verify(topic).is_exact


def test_a_compaction_that_fills_the_disk_itself(
    make_carrier: MakeCarrier, small_disk: Path
) -> None:
    """It gives back what it took, so that the writer goes on without anybody's help."""
    carrier, topic = _half_carried(make_carrier, small_disk)
    for _ in range(4):
        assert not carrier.carry(carrier.plan(topic, at_most=1)).failures
    # Less than the eight files together, more than a batch and what upkeep adds to the log.
    _fill(small_disk, left_bytes=7 * VALUE_BYTES)
    for _ in range(3):
        with pytest.raises(LakeRefusedError, match="could not be maintained"):
            list(keep_up(carrier.settings.lake))
    assert not carrier.carry(carrier.plan(topic, at_most=1)).failures
    assert _offsets(carrier, topic) == [*range(9)]
    _free(small_disk)
    (report,) = keep_up(carrier.settings.lake)
    assert report.files_after == 1
    assert not carrier.carry_all(topic).failures
    assert carrier.verify(topic).is_exact
