"""The study of one consumer: its cases and its report."""

import json
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.laboratory.studies.consumer.commits import records_per_s
from penstock.laboratory.studies.consumer.drain import Drained
from penstock.laboratory.studies.consumer.page import StudyFinding, draw, page_text
from penstock.laboratory.studies.consumer.questions import cases

ASKED = {
    "partitions of one topic",
    "topics, 24 partitions in all",
    "record size",
    "compression",
    "batch time",
    "Spark",
}


def run(speed: float) -> Drained:
    return Drained(speed * 1000, speed, speed * 1.1, None, 12.0, 5)


@pytest.mark.parametrize("quick", [True, False])
def test_every_question_has_at_least_two_cases(quick: bool) -> None:
    """Every question of the owner's notes is varied, also in the quick form."""
    found = cases(10**6, quick=quick)
    for question in ASKED:
        assert len({one.label for one in found if one.question == question}) >= 2
    assert {one.question for one in found} == ASKED
    assert all(one.filling.total_bytes == 10**6 for one in found)


def test_the_page_has_ratios_and_spreads(tmp_path: Path) -> None:
    """The report has ratios, the spread of the runs and one picture per question."""
    first, second = cases(10**6, quick=True)[:2]
    findings = [StudyFinding(first, (run(10), run(20), run(30))), StudyFinding(second, (run(60),))]
    text = page_text(findings, runs=3, cores=2, load=7.4)
    assert "| 1 | 20.0 | 1.00 | 3.00 | 20,000 | 22.0 |  | 12 ms |" in text
    assert "| 24 | 60.0 | 3.00 | 1.00 |" in text
    assert "7, on 2 cores" in text
    drawn = draw(findings, tmp_path / "consumer")
    assert [one.name for one in drawn] == ["partitions-of-one-topic.png"]
    assert f"(consumer/{drawn[0].name})" in text
    assert drawn[0].stat().st_size > 1000


def test_speed_is_counted_from_the_end_of_the_first_batch(tmp_path: Path) -> None:
    """Speed counts from the end of the first batch; a single batch counts by its own time."""
    log = tmp_path / "consumer.log"
    rows = [
        {"event": event, "records": records, "seconds": 5, "timestamp": f"2026-01-01T00:00:{at}Z"}
        for event, records, at in (
            ("batch_carried", 100, 10),
            ("something", 1, 11),
            ("batch_carried", 30, 12),
            ("batch_carried", 50, 14),
        )
    ]
    log.write_text("a warning\n" + "\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert records_per_s(log) == pytest.approx(20)
    log.write_text(json.dumps(rows[0]), encoding="utf-8")
    assert records_per_s(log) == pytest.approx(20)
    log.write_text("nothing", encoding="utf-8")
    with pytest.raises(PenstockError, match="carried nothing"):
        records_per_s(log)
