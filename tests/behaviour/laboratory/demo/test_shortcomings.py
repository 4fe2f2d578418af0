"""When the demo calls itself failed, and what it says then."""

from dataclasses import replace
from typing import Any

import pytest

from penstock.laboratory.demo.observation import Moment
from penstock.laboratory.demo.recorded_run import RecordedRun
from penstock.laboratory.demo.run import DemoRun, shortcomings
from penstock.laboratory.demo.story import DemoIncident
from penstock.laboratory.load import LoadResult
from penstock.verification import VerificationResult
from penstock.verification.check import PartitionVerdict

LOAD = LoadResult(52.0, 10, 10, 1000, 0, 0, None, {"orders-0": 10})
ORDERS = PartitionVerdict("orders", 0, 10, 10, 10, 0, 0, 0, 0, 0)


def moments(*used: int) -> list[Moment]:
    """The group with so many consumers that carry something, a second each."""
    return [
        Moment(float(at_s), "Sentinel", 2e5, dict.fromkeys(range(count), 1e5), count, 1, 0)
        for at_s, count in enumerate(used)
    ]


def run(**changes: Any) -> DemoRun:
    given: dict[str, Any] = {
        "moments": moments(1, 3, 1),
        "incidents": [DemoIncident(1.0, "killed")] * 3,
        "results": [LOAD],
        "verdict": VerificationResult((ORDERS,)),
    }
    return DemoRun(RecordedRun("penstock"), **(given | changes))


def test_a_run_that_keeps_all_promises_lacks_nothing() -> None:
    """It grew, it shrank, it was disrupted, and every record is in the lake once."""
    assert shortcomings(run()) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"moments": moments(1, 3, 3)}, ["The group did not shrink."]),
        ({"moments": moments(3, 3, 1)}, ["The group did not grow."]),
        ({"moments": []}, ["The group did not grow.", "The group did not shrink."]),
        ({"incidents": []}, ["0 of 3 disruptions took place."]),
        (
            {"results": [replace(LOAD, records_failed=2)]},
            ["2 records could not be written to Kafka."],
        ),
        (
            {"results": [replace(LOAD, records_acknowledged=11)]},
            ["10 records are in the lake, 11 were produced."],
        ),
        (
            {"verdict": VerificationResult((replace(ORDERS, duplicated=1),))},
            ["Kafka and the lake differ."],
        ),
        (
            {"verdict": None},
            [
                "The lake was not compared with Kafka.",
                "0 records are in the lake, 10 were produced.",
            ],
        ),
    ],
)
def test_each_broken_promise_is_named(changes: dict[str, Any], said: list[str]) -> None:
    """So that nobody has to search the lines above for what failed."""
    assert shortcomings(run(**changes)) == said


def test_a_run_without_records_proves_nothing() -> None:
    """However exact the empty lake is."""
    nothing = replace(LOAD, records_acknowledged=0)
    assert "No record was produced." in shortcomings(run(results=[nothing]))
