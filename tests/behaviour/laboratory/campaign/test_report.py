"""The report and the picture of a campaign, from what was observed."""

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.laboratory.campaign.deliveries import DeliveryCheck
from penstock.laboratory.campaign.faults import Fault, Harm, Injected, Part
from penstock.laboratory.campaign.figures import FENCED, ConsumerDecision, Sample, Surplus
from penstock.laboratory.campaign.lake_reading import CommitTime
from penstock.laboratory.campaign.observed import CampaignCheck, CampaignPlan, CampaignRun
from penstock.laboratory.campaign.picture import draw
from penstock.laboratory.campaign.report import report_data, report_rows, reported
from penstock.laboratory.campaign.watching import Watched
from penstock.processes import ProcessIdentity
from penstock.verification import PartitionVerdict, VerificationResult

EXACT = PartitionVerdict("plain", 0, 10, 10, 10, 0, 0, 0, 0, 0)
DELIVERED = DeliveryCheck(10, 2, 1, 0, 0, 0, 0, 0)


UNHARMED = ConsumerDecision(6.0, FENCED, 2, "consumer 2 did not report")


def observed() -> CampaignRun:
    return CampaignRun(
        length_s=20.0,
        injected=[
            Injected(Fault(2.0, Part.CONSUMER, Harm.KILL), 2.0, 2.0, 2.0, consumer=1),
            Injected(Fault(4.0, Part.BROKER, Harm.KILL), 4.0, 4.0, 10.0),
            Injected(Fault(15.0, Part.MONITOR, Harm.PAUSE, for_s=3.0), 15.0, 18.0, 18.0),
        ],
        commits=[
            (at_s, CommitTime(0, "topic", "plain-0", number))
            for number, at_s in enumerate((-4.0, 1.5, 3.5, 12.0, 13.0, 14.5, 19.0, 22.5))
        ],
        watched=Watched(
            samples=[Sample(1.0, 2, None, 3), Sample(2.0, 3, 2, 5), Sample(9.0, 5, 2, 9)],
            decisions=[
                ConsumerDecision(-3.0, FENCED, 4, "consumer 4 before the begin"),
                ConsumerDecision(5.0, FENCED, 1, "consumer 1 did not report"),
            ],
            first_seen_s={ProcessIdentity(1, 1): -2.0, ProcessIdentity(2, 1): 3.0},
        ),
        has_drained=True,
    )


def checked(verdict: PartitionVerdict = EXACT, told: DeliveryCheck = DELIVERED) -> CampaignCheck:
    return CampaignCheck(VerificationResult((verdict,)), told)


def test_the_report_has_the_figures_of_the_targets() -> None:
    """What happened before the campaign began is in none of them."""
    run = observed()
    assert reported(run, checked(), 1).is_successful
    run.watched.decisions.append(UNHARMED)
    report = reported(run, checked(), 1)
    assert (report.records, report.lost, report.doubled, report.faults) == (10, 0, 0, 3)
    assert report.faults_by_kind["consumer killed with -9"] == 1
    assert report.outage_s == 6.0
    assert report.commits.share == pytest.approx(6 / 20)
    assert report.commits_without_outages.seconds == 14
    assert (report.stall.since_s, report.stall.seconds) == (3.5, 8.5)
    assert report.stall_without_outages.seconds == pytest.approx(4.5)
    assert report.partition_stall is not None
    assert report.partition_stall.stall.seconds == pytest.approx(4.5)
    assert (report.fenced, report.fenced_unharmed) == (2, ["6 s: consumer 2 did not report"])
    assert (report.started, report.consumers_max, report.needed_max) == (1, 5, 2)
    assert report.surplus == Surplus(2.5, 0.0, 0.0)
    assert report.drain_s == pytest.approx(4.5)
    rows = report_rows(report)
    assert rows["lost, doubled"] == "0, 0"
    waited = "without outages, for the partition that waited longest"
    assert rows[waited] == "4.5 s, plain-0 from 14 s on"
    without = replace(report, partition_stall=None)
    assert report_rows(without)[waited] == "none"
    assert rows["drained after the last fault"] == "4.5 s"


@pytest.mark.parametrize(
    "check",
    [
        checked(replace(EXACT, lost=1)),
        checked(replace(EXACT, duplicated=1)),
        checked(replace(EXACT, changed=1)),
        checked(told=replace(DELIVERED, lost=1)),
        checked(told=replace(DELIVERED, doubled=1)),
        checked(told=replace(DELIVERED, aborted_in_lake=1)),
        checked(told=replace(DELIVERED, committed=0)),
        CampaignCheck(VerificationResult(()), DELIVERED),
    ],
)
def test_either_count_can_fail_a_campaign(check: CampaignCheck) -> None:
    """A fault that only one of the counts finds is enough, and so is a check of nothing."""
    assert not reported(observed(), check, 1).is_successful


def test_lost_and_doubled_are_the_worse_of_both_counts() -> None:
    """One count does not hide what the other found."""
    check = checked(replace(EXACT, lost=3), replace(DELIVERED, doubled=2))
    report = reported(observed(), check, 1)
    assert (report.lost, report.doubled) == (3, 2)


def test_a_campaign_that_did_not_drain_failed() -> None:
    """It has no time of draining."""
    run = observed()
    run.has_drained = False
    report = reported(run, checked(), 1)
    assert (report.is_successful, report.drain_s) == (False, None)
    assert report_rows(report)["drained after the last fault"] == "never"


def test_a_campaign_in_which_an_unharmed_consumer_was_told_to_end_failed() -> None:
    """The group harmed itself, and people are told which one it was."""
    run = observed()
    run.watched.decisions.append(UNHARMED)
    report = reported(run, checked(), 1)
    assert not report.is_successful
    assert report_rows(report)["of them not harmed by any fault"] == "1"


def test_the_data_has_every_fault_and_sample() -> None:
    """Another program can draw and judge the campaign anew."""
    run, check = observed(), checked()
    data = report_data(CampaignPlan(1, 0.3), run, check, reported(run, check, 1))
    assert (len(data["injected"]), len(data["samples"])) == (3, 3)
    assert (data["is_successful"], data["plan"]["seed"]) == (True, 1)


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    """It is written also for a campaign in which nothing was observed."""
    draw(observed(), "a campaign", tmp_path / "some.png")
    draw(CampaignRun(length_s=5.0), "an empty campaign", tmp_path / "none.png")
    assert (tmp_path / "some.png").stat().st_size > 20_000
    assert (tmp_path / "none.png").stat().st_size > 5_000


def test_an_injected_fault_says_what_happened_to_whom() -> None:
    """The number of the consumer, the name of the topic and the length of a pause are in it."""
    hit = Injected(Fault(1, Part.CONSUMER, Harm.PAUSE, for_s=4), 1.0, 5.2, 5.2, consumer=3)
    made = Injected(Fault(1, Part.TOPIC, Harm.MAKE, topic="made-1"), 1.0, 1.0, 1.0)
    assert hit.explanation == "consumer 3 paused for 4 s"
    assert made.explanation == "topic made-1 made"
