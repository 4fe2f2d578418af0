"""Which status counts: the file of this folder, or Kafka's."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from kit.controller.whole_status import whole_status
from kit.program import invoked
from penstock.cli.group_status import NoStatusError, StatusSource
from penstock.errors import NotPermittedError, PenstockError, UnreachableError
from penstock.kafka_io.failures import TopicMissingError
from penstock.kafka_io.status_topic import SeenStatus
from penstock.settings import Settings, changed_settings


def status(epoch: int, age_s: float, **more: Any) -> dict[str, Any]:
    told = whole_status(age_s=age_s, controller_epoch=epoch, measurement_age_ms=None, **more)
    first = told["history"][0] | {"age_ms": 0, "first_age_ms": 0}
    return told | {"history": [first]}


class InKafka:
    """Stands for the reader: gives what it was given, one by one, and remembers being asked."""

    def __init__(self, *seen: SeenStatus | PenstockError | None) -> None:
        self._seen = list(seen)
        self.waits_s: list[float] = []

    def newest(self, *, wait_s: float = 0.0) -> SeenStatus | None:
        self.waits_s.append(wait_s)
        found = self._seen.pop(0) if len(self._seen) > 1 else self._seen[0]
        if isinstance(found, PenstockError):
            raise found
        return found

    def close(self) -> None:
        pass


def seen(epoch: int, age_s: float, **more: object) -> SeenStatus:
    return SeenStatus(status(epoch, age_s, **more), {"options": {}}, epoch, age_s)


def read(folder: Path, kafka: InKafka) -> dict[str, Any]:
    return StatusSource(_settings(folder), reader=lambda _: kafka).read()  # type: ignore[arg-type,return-value]  # has its methods


def _settings(folder: Path) -> Settings:
    return changed_settings(Settings(), {"controller.directory": str(folder)})


def in_file(folder: Path, content: dict[str, Any]) -> None:
    (folder / "status.json").write_text(json.dumps(content), encoding="utf-8")


def test_a_fresh_file_is_enough(tmp_path: Path) -> None:
    """Kafka is not asked: the file is as new, and works while Kafka is away."""
    in_file(tmp_path, status(3, 1))
    kafka = InKafka(seen(4, 0))
    found = read(tmp_path, kafka)
    assert (found["source"], found["controller_epoch"], kafka.waits_s) == ("file", 3, [])


@pytest.mark.parametrize(
    ("file", "kafka", "source"),
    [
        (status(3, 60), seen(3, 2), "kafka"),
        (status(3, 60), seen(4, 0.5), "kafka"),
        (status(3, 60), seen(3, 90, has_ended=True), "file"),
        (status(3, 1, has_ended=True), seen(4, 0), "kafka"),
        (status(3, 1, group="another"), seen(2, 700), "kafka"),
        (status(3, 1, prefix="another"), seen(2, 700), "kafka"),
        (status(5, 60), seen(4, 55, has_ended=True), "file"),
    ],
)
def test_of_an_old_file_and_kafka_the_newer_one_counts(
    tmp_path: Path, file: dict[str, Any], kafka: SeenStatus, source: str
) -> None:
    """A later controller's before an earlier one's; a file of another group is none."""
    in_file(tmp_path, file)
    found = read(tmp_path, InKafka(kafka))
    assert found["source"] == source
    assert found["source_problem"] is None
    assert found["history"][0]["age_ms"] == pytest.approx(found["age_s"] * 1000, abs=1)


def test_an_old_file_is_shown_when_kafka_is_away(tmp_path: Path) -> None:
    """With what the problem is."""
    in_file(tmp_path, status(3, 60))
    found = read(tmp_path, InKafka(UnreachableError("No broker answers.")))
    assert (found["source"], found["source_problem"]) == ("file", "No broker answers.")
    assert found["is_stale"]


def test_without_any_status_it_says_where_it_looked(tmp_path: Path) -> None:
    """The file, and what is wrong with the topic."""
    for answer, words in [
        (None, "has no status of group penstock"),
        (TopicMissingError("gone"), "data-engineering-status does not exist"),
        (UnreachableError("No broker answers."), "cannot be read: No broker answers"),
    ]:
        with pytest.raises(NoStatusError, match=words):
            read(tmp_path, InKafka(answer))
    with pytest.raises(NotPermittedError):  # it says which right is missing
        read(tmp_path, InKafka(NotPermittedError("refused")))


def test_clocks_that_differ_are_no_silence(tmp_path: Path) -> None:
    """A status that seems a minute old is not, if the next one comes while one waits."""
    kafka = InKafka(seen(3, 60), seen(3, 0.1))
    found = read(tmp_path, kafka)
    assert not found["is_stale"]
    assert kafka.waits_s[0] == 0
    assert kafka.waits_s[1] > 4
    assert len(kafka.waits_s) == 2


@pytest.mark.parametrize("old", [seen(3, 6, has_ended=True), seen(3, 3_600)])
def test_what_is_surely_over_is_not_waited_for(tmp_path: Path, old: SeenStatus) -> None:
    """A controller that has ended, and one that has been silent for an hour."""
    kafka = InKafka(old)
    assert read(tmp_path, kafka)["is_stale"]
    assert kafka.waits_s == [0]


def test_one_who_asks_again_waits_once(tmp_path: Path) -> None:
    """A page that asks every second is not held up by a silent controller."""
    kafka = InKafka(seen(3, 60))
    source = StatusSource(_settings(tmp_path), reader=lambda _: kafka)  # type: ignore[arg-type,return-value]  # has its methods
    for _ in range(3):
        assert source.read()["is_stale"]
    assert [wait_s > 0 for wait_s in kafka.waits_s] == [False, True, False, False]


def test_no_broker_is_known_at_once(tmp_path: Path) -> None:
    """Nothing listens there: that is said within a moment, with where to look."""
    begun_s = time.monotonic()
    where = ["--set", f"controller.directory={tmp_path}", "--bootstrap-server", "127.0.0.1:1"]
    failed = invoked("status", *where)
    assert "No Kafka broker answers at 127.0.0.1:1" in str(failed.exception)
    assert failed.exit_code == 1
    assert time.monotonic() - begun_s < 5


def test_a_person_is_told_why_an_old_file_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is old, and Kafka, which may know better, does not answer."""
    monkeypatch.setenv("COLUMNS", "200")
    found = whole_status(age_s=60)
    in_file(tmp_path, found)
    where = ["--set", f"controller.directory={tmp_path}", "--bootstrap-server", "127.0.0.1:1"]
    shown = " ".join(invoked("status", *where).stdout.split())
    assert "Kafka could not be asked: No Kafka broker answers at 127.0.0.1:1" in shown
    assert re.search(r"has not reported for 6\d s", shown)
