"""A batch travels as a message and is the same again; it can name nothing outside of its folder."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from penstock.committer.offers import batch_of, is_signed, offer_of
from penstock.messages import OfferedBatch, decode, encode
from penstock.messages.commits import OFFERED_FILES_MAX, OfferedFile, OfferedRange
from penstock.model import Epoch, TopicPartition
from penstock.pipeline.batch import Claim, Writer
from penstock.pipeline.joint_table import BatchToCommit
from penstock.pipeline.ledger_moves import LedgerMove
from penstock.pipeline.written_files import WrittenFile

TOPIC_ID = "AbCdEfGhIjKlMnOpQrStUv"
KEY = b"k" * 64
WRITER = Writer(3, 1_700_000_000_000)
FOLDER = f"data/g/{WRITER}/7.{TOPIC_ID}.0.5"
ENTRY = f"g/{TOPIC_ID}/0"
FILE = WrittenFile(
    f"{FOLDER}/topic-{TOPIC_ID}/date=2026-01-31/city=K%C3%B6ln/part-0.parquet",
    1000,
    1_700_000_000_000,
    10,
    {"date": "2026-01-31", "city": None},
    '{"numRecords": 10}',
)
BATCH = BatchToCommit(
    FOLDER,
    "0" * 32,
    (
        LedgerMove(
            TopicPartition("orders", 0), ENTRY, 5, 15, Claim("U" * 22, Epoch(3, 4)), leader_epoch=2
        ),
        LedgerMove(TopicPartition("orders", 1), f"g/{TOPIC_ID}/1", None, 8),
    ),
    (FILE,),
    {ENTRY: (5, 15), f"g/{TOPIC_ID}/1": (0, 8)},
)


def _offer() -> OfferedBatch:
    offer = offer_of("orders", BATCH, "g", WRITER, KEY)
    assert offer is not None
    return offer


def test_a_batch_is_the_same_after_its_way() -> None:
    """Through the codec, with claims, null values and encoded paths."""
    encoded = encode(_offer(), group="g")
    found = decode(encoded.value, encoded.headers, group="g", topic_role="commit")
    assert isinstance(found, OfferedBatch)
    assert batch_of(found, "g") == BATCH


def test_only_who_has_the_key_can_offer() -> None:
    """Every field is signed: with any change, and with another key, it is refused."""
    offer = _offer()
    assert is_signed(offer, KEY, "g")
    assert not is_signed(offer, KEY, "h")
    assert not is_signed(offer, b"j" * 64, "g")
    changes: dict[str, Any] = {
        "table": "others",
        "consumer_id": 4,
        "incarnation": 5,
        "batch": "8.x",
        "table_mark": "1" * 32,
        "ranges": offer.ranges[:1],
        "files": (),
    }
    assert changes.keys() == OfferedBatch.model_fields.keys() - {"signature"}
    for name, value in changes.items():
        assert not is_signed(offer.model_copy(update={name: value}), KEY, "g"), name


def test_an_offer_cannot_speak_for_another_group() -> None:
    """Entries and files are named by who reads it."""
    found = batch_of(_offer(), "h")
    assert {move.application_id.split("/")[0] for move in found.moves} == {"h"}
    assert all(file.path.startswith(f"data/h/{WRITER}/") for file in found.files)


@pytest.mark.parametrize(
    "changed",
    [
        replace(BATCH, name="data/g/4-1/7"),
        replace(BATCH, name="data/h/3-1700000000000/7"),
        replace(BATCH, files=(replace(FILE, path="data/g/3-1/other/part-0.parquet"),)),
        replace(BATCH, files=(replace(FILE, path=f"{FOLDER}/../x.parquet"),)),
        replace(BATCH, files=(FILE,) * (OFFERED_FILES_MAX + 1)),
        replace(BATCH, files=(replace(FILE, stats="x" * 10_000),)),
        replace(BATCH, moves=()),
    ],
)
def test_what_does_not_fit_is_not_offered(changed: BatchToCommit) -> None:
    """Its writer commits it by itself."""
    assert offer_of("orders", changed, "g", WRITER, KEY) is None


@pytest.mark.parametrize("name", [".", "..", ".hidden", "", "a/b"])
def test_a_batch_stays_below_its_writer(name: str) -> None:
    """Its files could be named outside of the folder of who has signed it."""
    with pytest.raises(ValidationError):
        OfferedBatch.model_validate({**_offer().model_dump(), "batch": name})


@pytest.mark.parametrize("path", ["../x", "a/../b", "/etc/x", "a//b", "a/./b", "a/", "a\nb", ""])
def test_a_path_stays_below_its_batch(path: str) -> None:
    """A message with another one is refused."""
    with pytest.raises(ValidationError):
        OfferedFile(path=path, size_bytes=1, modified_at_ms=1, records=1, statistics="{}")


@pytest.mark.parametrize(
    "change",
    [
        {"ledger_offset": 6},
        {"end": 4},
        {"ledger_offset": 5, "end": 5},
        {"authority": TOPIC_ID},
        {"epoch": "1.1"},
    ],
)
def test_a_ledger_only_grows(change: dict[str, Any]) -> None:
    """A range that would move it back, or not at all, is refused; and half of a claim."""
    row = {"topic": "orders", "partition": 0, "topic_id": TOPIC_ID, "start": 5, "end": 9}
    assert OfferedRange.model_validate(row).end == 9
    with pytest.raises(ValidationError):
        OfferedRange.model_validate(row | change)
