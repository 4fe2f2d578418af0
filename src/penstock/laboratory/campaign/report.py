"""The result of a campaign as figures, as the rows of a table, and as data for a file. Pure."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from penstock.laboratory.campaign.figures import (
    REMOVED,
    PartitionStall,
    SecondsWithCommit,
    Stall,
    Surplus,
    deletions_s,
    drain_s,
    flows_again_s,
    given_up,
    given_up_unharmed,
    longest_partition_stall,
    longest_stall,
    outages_of,
    seconds_with_commit,
    surplus,
    with_recoveries,
)
from penstock.laboratory.campaign.observed import CampaignCheck, CampaignPlan, CampaignRun


@dataclass(frozen=True, slots=True)
class CampaignReport:
    """The figures that the targets are about."""

    records: int
    aborted: int
    unknown: int
    lost: int
    doubled: int
    is_exact: bool
    has_drained: bool
    faults: int
    faults_by_kind: dict[str, int]
    outage_s: float
    commits: SecondsWithCommit
    commits_without_outages: SecondsWithCommit
    stall: Stall
    stall_without_outages: Stall
    stall_without_recoveries: Stall
    partition_stall: PartitionStall | None
    flows_again_s: dict[str, float]
    fenced: int
    fenced_unharmed: list[str]
    removed: int
    started: int
    consumers_max: int
    needed_max: int
    surplus: Surplus
    drain_s: float | None

    @property
    def is_successful(self) -> bool:
        """Every record is in the lake once, and nobody was told to end whom nothing had harmed.

        The other figures are for people to judge: they depend on the machine. These do not, because
        silence is counted in heartbeats that came back.
        """
        has_carried_all = self.is_exact and self.has_drained and self.records > 0
        return has_carried_all and not self.fenced_unharmed


def reported(run: CampaignRun, check: CampaignCheck, spares: int) -> CampaignReport:
    commits_s = [at_s for at_s, _ in run.commits]
    outages = outages_of(run.injected)
    samples = run.watched.samples
    decisions = [one for one in run.watched.decisions if one.at_s >= 0]
    return CampaignReport(
        records=check.deliveries.committed,
        aborted=check.deliveries.aborted,
        unknown=check.deliveries.unknown,
        lost=check.lost,
        doubled=check.doubled,
        is_exact=check.is_exact,
        has_drained=run.has_drained,
        faults=len(run.injected),
        faults_by_kind=dict(sorted(Counter(one.fault.kind for one in run.injected).items())),
        outage_s=sum(until_s - since_s for since_s, until_s in outages),
        commits=seconds_with_commit(commits_s, run.length_s),
        commits_without_outages=seconds_with_commit(commits_s, run.length_s, outages),
        stall=longest_stall(commits_s, run.length_s),
        stall_without_outages=longest_stall(commits_s, run.length_s, outages),
        stall_without_recoveries=longest_stall(
            commits_s, run.length_s, with_recoveries(outages, commits_s, run.length_s)
        ),
        partition_stall=longest_partition_stall(
            [(at_s, one.partition) for at_s, one in run.commits],
            run.length_s,
            outages,
            deletions_s(run.injected),
        ),
        flows_again_s=flows_again_s(commits_s, run.injected, run.length_s),
        fenced=len(given_up(decisions)),
        fenced_unharmed=[
            f"{one.at_s:.0f} s: {one.explanation}"
            for one in given_up_unharmed(decisions, run.injected)
        ],
        removed=sum(one.code == REMOVED for one in decisions),
        started=sum(first_s > 0 for first_s in run.watched.first_seen_s.values()),
        consumers_max=max((one.consumers for one in samples), default=0),
        needed_max=max((one.needed or 0 for one in samples), default=0),
        surplus=surplus(samples, spares),
        drain_s=drain_s(commits_s, run.last_fault_over_s) if run.has_drained else None,
    )


def report_rows(report: CampaignReport) -> dict[str, str]:
    """For people; the order is that of the targets in the campaign's document."""
    with_commit, without = report.commits, report.commits_without_outages
    kinds = ", ".join(f"{count} {kind}" for kind, count in report.faults_by_kind.items())
    return {
        "records committed, aborted, of unknown fate": (
            f"{report.records:,}, {report.aborted:,}, {report.unknown:,}"
        ),
        "lost, doubled": f"{report.lost:,}, {report.doubled:,}",
        "faults": f"{report.faults}: {kinds}",
        "seconds with a commit": f"{with_commit.share:.0%} of {with_commit.seconds} s",
        "the same while broker and Spark server were up": (
            f"{without.share:.0%} of {without.seconds} s"
        ),
        "longest stall": f"{report.stall.seconds:.1f} s, from {report.stall.since_s:.0f} s on",
        "the same without outages of broker and Spark server": (
            f"{report.stall_without_outages.seconds:.1f} s, "
            f"from {report.stall_without_outages.since_s:.0f} s on"
        ),
        "the same also without the time to flow again after them": (
            f"{report.stall_without_recoveries.seconds:.1f} s, "
            f"from {report.stall_without_recoveries.since_s:.0f} s on"
        ),
        "without outages, for the partition that waited longest": (
            "none"
            if report.partition_stall is None
            else f"{report.partition_stall.stall.seconds:.1f} s, {report.partition_stall.partition}"
            f" from {report.partition_stall.stall.since_s:.0f} s on"
        ),
        "a commit after the return of": ", ".join(
            f"{part} {seconds:.1f} s" for part, seconds in sorted(report.flows_again_s.items())
        ),
        "consumers told to end as broken": f"{report.fenced}",
        "of them not harmed by any fault": f"{len(report.fenced_unharmed)}",
        "consumers removed because fewer do": f"{report.removed}",
        "consumer processes started": f"{report.started}",
        "consumers at most, needed at most": f"{report.consumers_max}, {report.needed_max}",
        "consumers per needed one, at most": f"{report.surplus.most_per_needed:.1f}",
        "more than the needed ones and spares, at the longest": (
            f"{report.surplus.seconds:.0f} s, from {report.surplus.since_s:.0f} s on"
        ),
        "drained after the last fault": (
            "never" if report.drain_s is None else f"{report.drain_s:.1f} s"
        ),
    }


def report_data(
    plan: CampaignPlan, run: CampaignRun, check: CampaignCheck, report: CampaignReport
) -> dict[str, Any]:
    """Everything, for a file or another program."""
    return {
        "plan": asdict(plan),
        **asdict(report),
        "is_successful": report.is_successful,
        "commits_share": report.commits.share,
        "commits_without_outages_share": report.commits_without_outages.share,
        "length_s": run.length_s,
        "deliveries": asdict(check.deliveries),
        "verification": check.verification.as_data(),
        "injected": [asdict(one) for one in run.injected],
        "not_injected": run.not_injected,
        "decisions": [asdict(one) for one in run.watched.decisions],
        "samples": [asdict(one) for one in run.watched.samples],
        "commits_s": [round(at_s, 3) for at_s, _ in run.commits],
    }
