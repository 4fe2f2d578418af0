"""A topic without an id looks the same after it was made again, so it is refused."""

from pathlib import Path

import pytest

from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline import Pipeline, PlannedRange, TopicWithoutIdError, Writer
from penstock.settings import Settings
from penstock.settings.sections import KafkaSettings, LakeSettings


@pytest.mark.parametrize("no_id", ["AAAAAAAAAAAAAAAAAAAAAA", ""])
def test_its_partitions_are_refused_before_anything_is_read(tmp_path: Path, no_id: str) -> None:
    """Each fails with the reason and what to do; no table is made."""
    kafka = KafkaSettings.model_validate(
        {"bootstrap_servers": "127.0.0.1:1", "answer_timeout": "1s"}
    )
    settings = Settings(kafka=kafka, lake=LakeSettings(root=str(tmp_path)))
    places = [TopicPartition("orders", 0), TopicPartition("payments", 0)]
    planned = [PlannedRange(OffsetRange(place, 0, 5), no_id) for place in places]
    result = Pipeline(settings, session=None).carry(planned, writer=Writer(1, 1))
    assert set(result.failures) == set(places)
    for failure in result.failures.values():
        assert isinstance(failure, TopicWithoutIdError)
        assert failure.is_lasting
        assert "no topic id" in str(failure)
    assert not list(tmp_path.iterdir())
