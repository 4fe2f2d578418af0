"""The figures of a campaign, from times."""

from dataclasses import replace

import pytest

from penstock.laboratory.campaign.faults import Fault, Harm, Injected, Part
from penstock.laboratory.campaign.figures import (
    CREATED,
    FENCED,
    RECOVERY_S,
    REMOVED,
    ConsumerDecision,
    PartitionStall,
    Sample,
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


def harmed(
    part: Part,
    at_s: float,
    *,
    over_s: float | None = None,
    back_s: float | None = None,
    consumer: int | None = None,
) -> Injected:
    over = at_s if over_s is None else over_s
    return Injected(
        Fault(at_s, part, Harm.KILL), at_s, over, over if back_s is None else back_s, consumer
    )


def fenced(consumer: int, at_s: float) -> ConsumerDecision:
    return ConsumerDecision(at_s, FENCED, consumer, f"consumer {consumer} did not report")


def test_a_second_counts_once_however_many_commits_it_has() -> None:
    """Only whole seconds of the campaign are counted, and commits before and after it are not."""
    found = seconds_with_commit([-3.0, -0.5, 0.1, 0.9, 2.0, 4.99, 5.5, 9.0], 5.7)
    assert found == SecondsWithCommit(5, 3)
    assert found.share == pytest.approx(0.6)


def test_seconds_that_an_outage_touches_are_left_out() -> None:
    """A second counts only if broker and Spark server were up during all of it."""
    found = seconds_with_commit([0.5, 2.5, 7.5], 10.0, [(1.5, 4.0), (8.2, 8.3)])
    assert found == SecondsWithCommit(6, 2)


def test_a_campaign_that_was_one_outage_has_no_share() -> None:
    """No second is left, and nothing is divided by it."""
    assert seconds_with_commit([1.0], 3.0, [(0.0, 3.0)]).share == 0.0


def test_the_longest_stall_reaches_from_commit_to_commit_or_to_an_end() -> None:
    """The begin and the end of the campaign bound a stall too."""
    assert longest_stall([1.0, 2.0, 6.5, 7.0], 10.0) == Stall(2.0, 6.5, 4.5)
    assert longest_stall([5.0], 8.0) == Stall(0.0, 5.0, 5.0)
    assert longest_stall([1.0], 8.0) == Stall(1.0, 8.0, 7.0)
    assert longest_stall([-1.0, 9.0], 8.0) == Stall(0.0, 8.0, 8.0)


def test_of_a_stall_only_what_no_outage_covers_is_counted() -> None:
    """An outage within a stall, at its begin or at its end is taken off; one beside it is not."""
    outages = [(3.0, 6.0), (11.0, 30.0)]
    assert longest_stall([1.0, 9.0, 10.0, 33.0], 34.0, outages) == Stall(1.0, 9.0, 5.0)
    assert longest_stall([2.0], 10.0, [(0.0, 2.5)]) == Stall(2.0, 10.0, 7.5)


def test_a_partition_that_waits_is_not_hidden_by_the_others() -> None:
    """The stretch between two commits of one partition counts, less the outages in it."""
    commits = [(-9.0, "a"), (-1.0, "a"), (1.0, "a"), (2.0, "b"), (3.0, "a"), (4.0, "a"), (9.0, "b")]
    assert longest_partition_stall(commits, 5.0) == PartitionStall("b", Stall(2.0, 9.0, 7.0))
    outage = [(2.5, 9.0)]
    found = longest_partition_stall(commits, 5.0, outage)
    assert found == PartitionStall("a", Stall(1.0, 3.0, 1.5))
    assert longest_partition_stall([], 5.0) is None


def test_a_partition_that_stops_for_ever_is_a_stall() -> None:
    """Until the load ends; the partitions of a deleted topic may end before."""
    commits = [(1.0, "a-0"), (9.0, "a-0"), (1.0, "b-0"), (3.0, "b-0")]
    found = longest_partition_stall(commits, 600.0)
    assert found == PartitionStall("b-0", Stall(3.0, 600.0, 597.0))
    gone = Injected(Fault(3.0, Part.TOPIC, Harm.DELETE, topic="b"), 3.0, 3.0, 3.0)
    found = longest_partition_stall(commits, 10.0, (), deletions_s([gone]))
    assert found == PartitionStall("a-0", Stall(1.0, 9.0, 8.0))


def test_while_a_topic_is_deleted_its_partitions_do_not_stall() -> None:
    """It was made again after five minutes: nobody could carry it before."""
    commits = [(1.0, "a-0"), (9.0, "a-0"), (3.0, "b-0"), (400.0, "b-0"), (404.0, "b-0")]
    gone = Injected(Fault(3.5, Part.TOPIC, Harm.DELETE, topic="b"), 3.5, 3.5, 3.5)
    found = longest_partition_stall(commits, 10.0, (), deletions_s([gone]))
    assert found == PartitionStall("a-0", Stall(1.0, 9.0, 8.0))
    other = replace(gone, fault=replace(gone.fault, topic="a"))
    found = longest_partition_stall(commits, 10.0, (), deletions_s([other]))
    assert found == PartitionStall("b-0", Stall(3.0, 400.0, 397.0))


def test_records_flow_again_with_the_next_commit_after_the_return() -> None:
    """The longest of each part counts; one that goes down again first is counted only once."""
    injected = [
        harmed(Part.BROKER, 10.0, back_s=15.0),
        harmed(Part.BROKER, 40.0, back_s=44.0),
        harmed(Part.CONTROLLER, 60.0),
        harmed(Part.SPARK_SERVER, 80.0, back_s=85.0),
        harmed(Part.SPARK_SERVER, 86.0, back_s=95.0),
        harmed(Part.CONSUMER, 61.0, consumer=1),
    ]
    found = flows_again_s([16.0, 47.5, 61.5, 96.0], injected, 100.0)
    assert found == {"broker": 3.5, "controller": 1.5, "Spark server": 1.0}


def test_of_parts_that_are_away_together_the_last_return_counts() -> None:
    """The controller is started again at once, the broker seventeen seconds later."""
    injected = [
        harmed(Part.BROKER, 10.0, back_s=30.0),
        harmed(Part.CONTROLLER, 13.0),
        harmed(Part.CONTROLLER, 50.0),
    ]
    assert flows_again_s([33.0, 51.0], injected, 100.0) == {"broker": 3.0, "controller": 1.0}


def test_records_that_never_flow_again_are_counted_to_the_end() -> None:
    """No commit after the return is no reason to leave it out."""
    assert flows_again_s([5.0], [harmed(Part.BROKER, 8.0)], 30.0) == {"broker": 22.0}


def test_outages_are_those_of_the_servers_joined_where_they_meet() -> None:
    """A fault of a consumer is no outage, and seconds are not taken off twice."""
    injected = [
        harmed(Part.SPARK_SERVER, 14.0, back_s=20.0),
        harmed(Part.BROKER, 10.0, back_s=15.0),
        harmed(Part.CONSUMER, 30.0, back_s=40.0, consumer=1),
        harmed(Part.BROKER, 50.0, back_s=55.0),
        harmed(Part.SPARK_SERVER, 51.0, back_s=52.0),
    ]
    assert outages_of(injected) == [(10.0, 20.0), (50.0, 55.0)]


def test_an_outage_with_its_recovery_ends_with_the_next_commit() -> None:
    """Unless another outage comes first: the time between the two stays a stall."""
    outages = [(10.0, 20.0), (30.0, 35.0), (40.0, 50.0), (70.0, 80.0)]
    commits_s = [9.0, 22.0, 29.0, 55.0]
    wider = [(10.0, 22.0), (30.0, 35.0), (40.0, 55.0), (70.0, 90.0)]
    assert with_recoveries(outages, commits_s, 90.0) == wider
    assert longest_stall([1.0, 9.0, 29.0, 55.0], 56.0, wider[:3]) == Stall(1.0, 9.0, 8.0)


def test_a_consumer_that_was_hit_is_not_unharmed_until_it_had_time_to_recover() -> None:
    """A fault explains that its consumer is given up, from its begin until it has recovered."""
    hit = harmed(Part.CONSUMER, 10.0, over_s=25.0, consumer=3)
    explained = [fenced(3, 10.0), fenced(3, 20.0), fenced(3, 25.0 + RECOVERY_S)]
    not_explained = [fenced(3, 9.9), fenced(2, 20.0), fenced(3, 25.1 + RECOVERY_S)]
    decisions = [*explained, *not_explained]
    assert given_up(decisions) == decisions
    assert given_up_unharmed(decisions, [hit]) == not_explained


def test_an_outage_of_a_server_harms_no_consumer() -> None:
    """Whoever is given up because the broker is away counts as unharmed."""
    outage = harmed(Part.BROKER, 10.0, back_s=40.0)
    assert given_up_unharmed([fenced(1, 20.0)], [outage]) == [fenced(1, 20.0)]


def test_a_new_consumer_with_an_old_number_was_not_hit() -> None:
    """A hit of the former consumer explains nothing about the one created after it."""
    hit = harmed(Part.CONSUMER, 10.0, consumer=3)
    created = ConsumerDecision(18.0, CREATED, 3, "consumer 3 is created")
    decisions = [fenced(3, 15.0), created, fenced(3, 30.0)]
    assert given_up_unharmed(decisions, [hit]) == [fenced(3, 30.0)]


def test_a_consumer_that_is_removed_is_not_given_up() -> None:
    """One that nobody needs any more ends in order."""
    removed = ConsumerDecision(5.0, REMOVED, 2, "consumer 2 is removed: it has no partitions")
    assert given_up([removed]) == given_up_unharmed([removed], []) == []


def test_the_drain_lasts_until_the_last_commit() -> None:
    """It is 0 when nothing was left to carry."""
    assert drain_s([1.0, 40.0, 52.5], 50.0) == 2.5
    assert drain_s([1.0, 40.0], 50.0) == 0.0
    assert drain_s([], 50.0) == 0.0


def sizes(*rows: tuple[float, int, int | None]) -> list[Sample]:
    return [Sample(at_s, consumers, needed, 0) for at_s, consumers, needed in rows]


def test_a_surplus_is_counted_against_what_was_needed_lately() -> None:
    """The need that an outage hides for a while still counts, and a spare is no surplus."""
    outage = sizes((0, 4, 3), (10, 4, 1), (20, 4, None), (110, 4, 1))
    assert surplus(outage, 1) == Surplus(4 / 3, 0.0, 0.0)
    assert surplus(outage, 0) == Surplus(4 / 3, 0.0, 110.0)
    for_good = [*outage, *sizes((121, 4, 1), (150, 4, 1))]
    assert surplus(for_good, 1) == Surplus(4.0, 121.0, 29.0)


def test_the_longest_surplus_is_the_one_that_is_told() -> None:
    """A group that was at its size in between has two stretches."""
    seen = sizes((0, 9, 3), (5, 9, 3), (6, 4, 3), (10, 5, 3), (40, 5, 3), (41, 4, 3), (50, 5, 3))
    assert surplus(seen, 1) == Surplus(3.0, 10.0, 30.0)
    assert surplus([], 1) == Surplus(0.0, 0.0, 0.0)
