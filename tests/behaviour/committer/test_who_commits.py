"""Who commits for the writers of a table, when batches are handed over, what goes into a commit."""

from collections import Counter
from dataclasses import dataclass

import pytest

from penstock.committer.core.duty import WRITERS_ALONE_MAX, Duty, committer_of, duty_of
from penstock.committer.core.gathering import (
    BATCHES_MAX,
    COMMIT_PERIOD_S,
    DESCRIBED_BYTES_MAX,
    FILES_MAX,
    REST_S_MAX,
    STORE_COMMIT_PERIOD_S,
    WAITING_BYTES_MAX,
    WAITING_MAX,
    Waiting,
    commit_period_s,
)
from penstock.committer.core.waiting import (
    ANSWER_S_MAX,
    ANSWER_S_MIN,
    HEARD_S_MIN,
    REFRAIN_FIRST_S,
    REFRAIN_S_MAX,
    Committer,
)


def _writers(*numbers: int) -> set[str]:
    return {f"data/g/{number}-7" for number in numbers}


def test_few_writers_commit_for_themselves() -> None:
    """Up to eight of the group, this one included; incarnations of one consumer are one."""
    eight = _writers(*range(1, WRITERS_ALONE_MAX + 1))
    assert duty_of(1, "orders", eight, "g") is Duty.ALONE
    assert duty_of(1, "orders", eight | {"data/g/1-8"}, "g") is Duty.ALONE
    assert duty_of(9, "orders", eight, "g") is not Duty.ALONE


def test_one_of_many_commits_for_all() -> None:
    """All agree on it, it stays when another one leaves, and tables have different ones."""
    ids = range(1, 51)
    for table in ("orders", "payments"):
        duties = {one: duty_of(one, table, _writers(*ids), "g") for one in ids}
        (chosen,) = (one for one, duty in duties.items() if duty is Duty.COMMITS)
        assert set(duties.values()) == {Duty.COMMITS, Duty.OFFERS}
        for gone in set(ids) - {chosen}:
            assert committer_of(table, set(ids) - {gone}) == chosen
    tables = [f"t{number}" for number in range(500)]
    loads = Counter(committer_of(table, ids) for table in tables)
    assert max(loads.values()) <= 25, "ten each, more or less"


def test_one_that_has_just_come_may_be_chosen() -> None:
    """It counts before the log names it."""
    others = [one for one in range(1, 60) if one != committer_of("orders", range(1, 60))]
    new = committer_of("orders", range(1, 60))
    assert duty_of(new, "orders", _writers(*others), "g") is Duty.COMMITS


@pytest.mark.parametrize(
    "other",
    [
        "",
        "data/h/1-7",
        "data/g/x-7",
        "data/g/1",
        "data/g/\u0661-7",
        "data/g",
        "d/g/1-7",
        f"data/g/{'9' * 5_000}-7",  # Python refuses to read a number of so many digits
    ],
)
def test_others_do_not_count(other: str) -> None:
    """Other groups, other tools, and names that no consumer of ours has."""
    eight = _writers(*range(2, WRITERS_ALONE_MAX + 2))
    assert duty_of(2, "orders", eight | {other}, "g") is Duty.ALONE


def test_nothing_is_handed_over_before_somebody_was_heard() -> None:
    """And no longer when it is silent or has left."""
    nobody = Committer()
    assert not nobody.takes_batches(100.0)
    heard = nobody.heard(100.0, commit_s=0.1)
    assert heard.takes_batches(100.0 + HEARD_S_MIN)
    assert not heard.takes_batches(100.1 + HEARD_S_MIN)
    assert not heard.left().takes_batches(100.0)


def test_the_wait_follows_the_time_of_commits() -> None:
    """Two seconds at least, ten at most; one that commits slowly is heard for longer."""
    assert Committer().answer_wait_s == ANSWER_S_MIN
    assert Committer(commit_s=1.5).answer_wait_s == pytest.approx(6.0)
    assert Committer(commit_s=60.0).answer_wait_s == ANSWER_S_MAX
    assert Committer().heard(100.0, commit_s=2.0).takes_batches(108.0)


def test_who_does_not_answer_is_asked_less_and_less() -> None:
    """It must be heard again, after a wait that doubles; an answer makes up for all."""
    silent = Committer().heard(100.0, 0.1).not_committed(100.0)
    assert not silent.takes_batches(100.0 + REFRAIN_FIRST_S)
    again = silent.heard(101.0, 0.1)
    assert not again.takes_batches(101.0)
    assert again.takes_batches(100.0 + REFRAIN_FIRST_S)
    twice = again.not_committed(102.0)
    assert twice.refrains_until_s == 102.0 + 2 * REFRAIN_FIRST_S
    often = twice
    for _ in range(20):
        often = often.not_committed(200.0)
    assert often.refrains_until_s == 200.0 + REFRAIN_S_MAX
    assert often.committed().not_committed(300.0).refrains_until_s == 300.0 + REFRAIN_FIRST_S


def test_who_is_slow_and_heard_is_waited_for() -> None:
    """Up to ten seconds after the batch was handed over; who falls silent is not."""
    heard = Committer().heard(100.0, commit_s=0.1)
    assert heard.waits_until_s(100.5) == 100.5 + ANSWER_S_MIN
    on = heard.heard(102.0, commit_s=0.1)
    assert on.waits_until_s(100.5) == 102.0 + HEARD_S_MIN
    assert on.heard(109.0, commit_s=0.1).waits_until_s(100.5) == 100.5 + ANSWER_S_MAX
    assert on.left().waits_until_s(100.5) == 100.5 + ANSWER_S_MIN
    slow = heard.heard(101.0, commit_s=2.0)
    assert slow.waits_until_s(100.5) == 108.5, "never less than its commits take"


def test_one_answer_that_does_not_come_may_have_been_lost() -> None:
    """It must be heard again; from the second in a row on, it is asked less and less."""
    missed = Committer().heard(100.0, 0.1).not_answered(110.0)
    assert not missed.takes_batches(110.0)
    again = missed.heard(110.5, 0.1)
    assert again.takes_batches(110.5)
    twice = again.not_answered(120.0)
    assert twice.refrains(120.0 + REFRAIN_FIRST_S)
    assert twice.not_answered(120.0).refrains_until_s > twice.refrains_until_s
    assert not twice.committed().refrains(120.0), "it was found in the log: it commits"
    assert twice.committed().not_answered(130.0).heard(130.5, 0.1).takes_batches(130.5)
    refused = again.not_committed(120.0)
    assert refused.refrains(120.0), "a refusal is an answer"


@dataclass(frozen=True)
class Batch:
    name: str
    files: tuple[int, ...] = ()
    described_bytes: int = 0


def _waiting(*batches: Batch) -> Waiting[Batch]:
    waiting: Waiting[Batch] = Waiting()
    for one in batches:
        waiting = waiting.with_offer(one, 0.0)
    return waiting


def test_a_batch_that_is_offered_twice_waits_once() -> None:
    """A message may be read again."""
    waiting = (
        _waiting()
        .with_offer(Batch("a"), 4.0)
        .with_offer(Batch("b"), 4.0)
        .with_offer(Batch("a"), 4.0)
    )
    assert [one.name for one in waiting.batches] == ["a", "b"]


def test_a_commit_begins_at_once_and_the_next_a_little_later() -> None:
    """What came meanwhile goes into it together."""
    waiting = _waiting()
    assert not waiting.is_due(5.0)
    waiting = waiting.with_offer(Batch("a"), 4.0)
    assert waiting.is_due(5.0)
    assert waiting.since_s == 4.0
    assert waiting.with_offer(Batch("c"), 4.5).since_s == 4.0
    taken, left = waiting.taken(5.0)
    assert ([one.name for one in taken], left.batches) == (["a"], ())
    left = left.with_offer(Batch("b"), 4.0)
    assert not left.is_due(5.0 + COMMIT_PERIOD_S / 2)
    assert left.is_due(5.001 + COMMIT_PERIOD_S)


def test_in_an_object_store_commits_are_further_apart() -> None:
    """Every writer asks for every entry; half of the time is left for that, but not for ever."""
    assert commit_period_s(is_in_store=False, last_commit_s=9.0) == COMMIT_PERIOD_S
    assert commit_period_s(is_in_store=True, last_commit_s=0.0) == STORE_COMMIT_PERIOD_S
    assert commit_period_s(is_in_store=True, last_commit_s=0.4) == 0.8
    assert commit_period_s(is_in_store=True, last_commit_s=5.0) == 5.0 + REST_S_MAX
    left = _waiting(Batch("a")).taken(5.0)[1].with_offer(Batch("b"), 5.1)
    assert not left.is_due(5.5, 0.8)
    assert left.is_due(5.81, 0.8)


def test_offers_whose_writers_wait_no_longer_are_dropped() -> None:
    """They commit for themselves by now. The others stay, in their order."""
    waiting = _waiting(Batch("a"), Batch("b")).with_offer(Batch("c"), 5.0)
    assert waiting.without_late(ANSWER_S_MAX) == ((), waiting)
    late, left = waiting.without_late(ANSWER_S_MAX + 0.1)
    assert [one.name for one in late] == ["a", "b"]
    assert [one.name for one in left.batches] == ["c"]
    assert left.with_offer(Batch("a"), 11.0).batches[-1].name == "a", "it is forgotten"


def test_an_entry_does_not_grow_without_bound() -> None:
    """By batches and by files; a batch with more files than that goes alone."""
    waiting = _waiting(*(Batch(str(number)) for number in range(BATCHES_MAX + 5)))
    taken, left = waiting.taken(1.0)
    assert (len(taken), len(left.batches)) == (BATCHES_MAX, 5)
    large = Batch("large", (0,) * (FILES_MAX + 1))
    taken, left = _waiting(large, Batch("b", (1,))).taken(1.0)
    assert ([one.name for one in taken], len(left.batches)) == (["large"], 1)
    half = DESCRIBED_BYTES_MAX // 2
    waiting = _waiting(*(Batch(name, described_bytes=half) for name in "abc"))
    taken, left = waiting.taken(1.0)
    assert ([one.name for one in taken], [one.name for one in left.batches]) == (["a", "b"], ["c"])
    long = Batch("long", described_bytes=DESCRIBED_BYTES_MAX + 1)
    assert [one.name for one in _waiting(long, Batch("b")).taken(1.0)[0]] == ["long"]


def test_what_waits_is_bounded() -> None:
    """The oldest are dropped: their writers have given up long ago."""
    waiting = _waiting(*(Batch(str(number)) for number in range(WAITING_MAX)))
    assert [one.name for one in waiting.with_offer(Batch("new"), 4.0).batches][-2:] == [
        "999",
        "new",
    ]
    assert len(waiting.with_offer(Batch("new"), 4.0).batches) == WAITING_MAX
    third = WAITING_BYTES_MAX // 3
    large = _waiting(*(Batch(name, described_bytes=third) for name in "abc"))
    assert [one.name for one in large.batches] == ["a", "b", "c"]
    assert [one.name for one in large.with_offer(Batch("d", (), third), 4.0).batches] == [
        "b",
        "c",
        "d",
    ]
