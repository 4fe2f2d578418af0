"""Capacities are measured for each topic, count as time, and are shown in real bytes."""

from dataclasses import replace

import pytest

from kit.controller.imagined_group import MB, ImaginedGroup, partitions
from kit.controller.story import Storyteller, after
from kit.controller.two_topics import TWO_TOPICS
from penstock.controller.core.capacity import (
    Source,
    alike,
    capacities_of,
    capacity_of_consumer,
    capacity_rows,
    measured_by_consumer,
    source_of,
)
from penstock.controller.core.dry_run import dry_run, problem_of_question, weights_of_question
from penstock.controller.core.load import group_load, usual_capacity
from penstock.controller.core.saved_state import (
    decode_state,
    encode_state,
    read_content,
    state_as_json,
)
from penstock.controller.core.snapshot import snapshot
from penstock.controller.core.state import GrowthTrial, KnownCapacity, State
from penstock.controller.core.step_draft import StepDraft
from penstock.model import ConsumerId, TopicPartition
from penstock.settings.sections.packing import ASSUMED_CAPACITY_BYTES_PER_S
from penstock.state_directory.state_file import BrokenState

ONE, TWO = ConsumerId(1), ConsumerId(2)
FIRST = "consumer 1 reports plain-0@1.1 plain-1@1.2"
SECOND = "consumer 2 reports slow-0@1.3"


def state_of(teller: Storyteller) -> State:
    assert teller.state is not None
    return teller.state


def told(*lines: str) -> State:
    return state_of(after(*TWO_TOPICS, *lines))


def draft_of(state: State) -> StepDraft:
    return StepDraft(state, state.now_ms)


def test_a_partition_counts_by_the_time_that_it_costs() -> None:
    """40 of 100 and 4 of 10 are both two fifths of a consumer."""
    state = told()
    group = group_load(draft_of(state))
    load = group.load_bytes_per_s
    assert load[TopicPartition("plain", 0)] == pytest.approx(load[TopicPartition("slow", 0)])
    shares = {c: group.load_by_consumer[c] / group.capacity_by_consumer[c] for c in (ONE, TWO)}
    assert shares == {ONE: pytest.approx(0.8), TWO: pytest.approx(0.4)}


def test_the_weighted_load_of_the_group_is_its_real_load() -> None:
    """84 bytes a second are written; one consumer carries 70 of that mixture."""
    state = told()
    assert sum(group_load(draft_of(state)).load_bytes_per_s.values()) == pytest.approx(84)
    assert usual_capacity(draft_of(state)) == pytest.approx(70)


def test_people_see_real_bytes() -> None:
    """What a consumer carries of the partitions that it has, and what is written to them."""
    state = told()
    seen = snapshot(state, 0, is_degraded=False)
    assert [one["load_bytes_per_s"] for one in seen["consumers"]] == [80, 4]
    capacities = [one["capacity_bytes_per_s"] for one in seen["consumers"]]
    assert capacities == [pytest.approx(100), pytest.approx(10)]
    assert seen["question"]["load_bytes_per_s"]["slow-0"] == pytest.approx(4)
    assert seen["capacity"]["topics"]["slow"]["source"] == "calibrated"


def test_the_reason_of_a_plan_has_real_bytes() -> None:
    """The slow topic's consumer is over its capacity with 12 bytes a second."""
    lines = (*TWO_TOPICS, "3000 ms pass", FIRST, "consumer 2 reports slow-0@1.3")
    teller = after(*lines, "speeds plain-0=40 plain-1=10 slow-0=9 slow-1=1")
    teller.tell("tick +500")
    teller.tell("packed 1: plain-0 plain-1; 2: slow-0 slow-1")
    teller.tell("consumer 2 started slow-1@1.4")
    teller.tell("3000 ms pass")
    teller.tell("speeds plain-0=40 plain-1=10 slow-0=9 slow-1=3")
    state = state_of(teller)
    said = " ".join(teller.tell("tick +500"))
    assert state.phase.value == "Sentinel"
    assert (
        "consumer 2 is over capacity: 12 of 10 B/s" in said + state_of(teller).packing_explanation
    )


def test_a_plan_from_a_status_packs_weighted_and_shows_real_bytes() -> None:
    """The same question as the controller's, and the figures that people know."""
    asked = snapshot(told(), 0, is_degraded=False)["question"]
    problem = problem_of_question(asked)
    assert problem == replace(problem, load_bytes_per_s=problem.load_bytes_per_s)
    found = dry_run("CHAIN", problem, weights_of_question(asked))
    slow = TopicPartition("slow", 0)
    assert found.load_of(slow) == pytest.approx(4)
    assert problem.load_bytes_per_s[slow] == pytest.approx(4 * 7)
    assert found.capacity_of(TWO, [slow]) == pytest.approx(10)
    assert found.capacity_of(TWO, []) == pytest.approx(70)
    assert weights_of_question({}) == {}


def test_full_batches_of_one_topic_teach_its_capacity() -> None:
    """The topic's figure changes for all, and the source says so."""
    state = told("consumer 2 reports slow-0@1.3, alone=slow:20")
    assert state.capacities["slow"] == KnownCapacity(20, 20, 20, "measured")
    assert state.capacities["plain"].source == "calibrated"
    assert capacity_of_consumer(state, TWO) == pytest.approx(20)
    assert measured_by_consumer(state, TWO) == pytest.approx(20)
    assert measured_by_consumer(state, ONE) is None
    assert measured_by_consumer(replace(state, held_by={}), TWO) is None, "of other topics"
    assert source_of(state) is Source.CALIBRATED


def test_a_capacity_that_is_set_always_wins() -> None:
    """What was measured stands beside it."""
    state = state_of(after(*TWO_TOPICS[1:], "consumer 2 reports slow-0@1.3, alone=slow:20"))
    assert usual_capacity(draft_of(state)) == 100
    assert group_load(draft_of(state)).capacity_by_consumer == {ONE: 100, TWO: 100}
    rows = capacity_rows(state)
    assert (rows["source"], rows["bytes_per_s"]) == ("set", 100)
    assert rows["topics"]["slow"] == {
        "bytes_per_s": 100,
        "source": "set",
        "measured_bytes_per_s": 20,
        "lowest_bytes_per_s": 20,
        "highest_bytes_per_s": 20,
    }


def test_before_anything_is_known_a_figure_is_assumed() -> None:
    """And says that it is."""
    state = state_of(after("settings capacity=auto", *TWO_TOPICS[1:]))
    assert usual_capacity(draft_of(state)) == ASSUMED_CAPACITY_BYTES_PER_S
    rows = capacity_rows(state)
    assert rows["source"] == rows["topics"]["slow"]["source"] == "assumed"
    assert rows["topics"]["slow"]["measured_bytes_per_s"] is None


def test_a_topic_of_which_nothing_is_known_counts_like_the_middle_of_the_others() -> None:
    """Where three or more are known."""
    state = state_of(
        after(*TWO_TOPICS, "speeds plain-0=40 plain-1=40 slow-0=4 new-0=5", "tick +500")
    )
    third = {**state.capacities, "third": alike(50.0, Source.MEASURED)}
    state = replace(state, capacities=third)
    assert capacities_of(state).of("new") == pytest.approx(50)
    assert source_of(state) is Source.ASSUMED


def test_the_first_topics_that_are_known_do_not_make_the_others_look_slow() -> None:
    """A new group would grow for nothing, and slow down what it measures."""
    teller = after(*TWO_TOPICS, "speeds plain-0=40 plain-1=40 slow-0=4 new-0=5", "tick +500")
    state = state_of(teller)
    assert capacities_of(state).of("new") == pytest.approx(ASSUMED_CAPACITY_BYTES_PER_S)
    fast = {topic: alike(2 * ASSUMED_CAPACITY_BYTES_PER_S, Source.MEASURED) for topic in ("a", "b")}
    quick = replace(state, capacities=fast)
    assert capacities_of(quick).of("new") == pytest.approx(2 * ASSUMED_CAPACITY_BYTES_PER_S)


def test_nothing_is_written_yet() -> None:
    """Then every topic counts the same: a half of the time for each."""
    teller = after(*TWO_TOPICS[:4], "speeds plain-0=0 slow-0=0", "tick +500")
    assert usual_capacity(draft_of(state_of(teller))) == pytest.approx(2 / (1 / 100 + 1 / 10))
    begun = after(*TWO_TOPICS[:4])
    assert usual_capacity(draft_of(state_of(begun))) == pytest.approx(2 / (1 / 100 + 1 / 10))
    assert source_of(state_of(begun)) is Source.CALIBRATED


def test_a_stronger_consumer_counts_with_its_own_capacity() -> None:
    """Twice as strong is not chance; a tenth more is."""
    third = "consumer 3 reports nothing, alone=plain:"
    lines = ("deployed: 1 2 3", f"{FIRST}, alone=plain:100", "consumer 2 reports slow-0@1.3")
    state = told(*lines, "consumer 2 reports slow-0@1.3, alone=plain:110", f"{third}200")
    group = group_load(draft_of(state))
    usual = capacities_of(state)
    assert usual.of("plain") == pytest.approx(110)
    strengths = [x / usual.usual_bytes_per_s for x in group.capacity_by_consumer.values()]
    assert strengths == [pytest.approx(1), pytest.approx(1), pytest.approx(200 / 110)]


def test_the_spread_is_what_consumers_measured() -> None:
    """The middle one counts."""
    lines = ("deployed: 1 2 3", f"{FIRST}, alone=plain:80", f"{SECOND}, alone=plain:120")
    state = told(*lines, "consumer 3 reports nothing, alone=plain:100")
    assert state.capacities["plain"] == KnownCapacity(100, 80, 120, "measured")


@pytest.mark.parametrize(
    ("reported", "known"),
    [
        ("alone=slow:20", 20),
        ("alone=slow:10.5", None),
        ("alone=slow:>9", None),
        ("alone=slow:>20", 20),
        ("alone=slow:>10.5", None),
        ("alone=slow:0", None),
        ("alone=other:20", None),
        ("capacity_log_bytes_per_s=20.0", 20),
        ("at_least_log_bytes_per_s=20.0", 20),
        ("at_least_log_bytes_per_s=9.0", None),
        ("at_least_log_bytes_per_s=0.1", None),
    ],
)
def test_what_a_report_teaches(reported: str, known: float | None) -> None:
    """10 is calibrated. Keeping up shows a lower bound; a topic that nobody writes says nothing."""
    state = told(f"{SECOND}, {reported}")
    if reported == "alone=slow:10.5":
        known = 10.5
    assert state.consumers[TWO].capacity_by_topic == ({} if known is None else {"slow": known})


def test_keeping_up_does_not_lower_a_capacity() -> None:
    """A consumer with little to do is not weak."""
    state = told(f"{SECOND}, alone=slow:20", f"{SECOND}, alone=slow:>3")
    assert state.capacities["slow"].bytes_per_s == 20


def test_a_figure_that_differs_little_changes_nothing() -> None:
    """A tenth more or less is chance, and would move partitions."""
    state = told(f"{SECOND}, alone=slow:20", f"{SECOND}, alone=slow:21.9")
    assert state.capacities["slow"].bytes_per_s == 20
    state = told(f"{SECOND}, alone=slow:20", f"{SECOND}, alone=slow:17")
    assert state.capacities["slow"].bytes_per_s == 17


BOTH = "consumer 1 reports plain-0@1.1 plain-1@1.2 slow-0@1.3"


def capacities(state: State) -> dict[str, tuple[float, str]]:
    return {t: (round(x.bytes_per_s, 3), x.source) for t, x in state.capacities.items()}


def test_a_figure_for_several_topics_changes_each_by_the_same_share() -> None:
    """A consumer of an older release, or one that only keeps up, tells one figure for all."""
    state = told(f"{BOTH}, capacity_log_bytes_per_s=35.0")
    assert capacities(state) == {"plain": (50, "together"), "slow": (5, "together")}
    assert source_of(state) is Source.TOGETHER
    same = told(
        f"{BOTH}, capacity_log_bytes_per_s=35.0",
        f"{BOTH}, capacity_log_bytes_per_s=36.0",
        f"{BOTH}, at_least_log_bytes_per_s=37.0",
        f"{BOTH}, at_least_log_bytes_per_s=0.1",
    )
    assert capacities(same) == capacities(state)
    raised = told(f"{BOTH}, at_least_log_bytes_per_s=140.0")
    assert capacities(raised) == {"plain": (200, "together"), "slow": (20, "together")}


def test_what_is_measured_alone_stays_when_topics_are_measured_together() -> None:
    """The others take the rest of the time; where no time is left, nothing is learned."""
    alone = f"{SECOND}, alone=slow:20"
    state = told(alone, f"{BOTH}, capacity_log_bytes_per_s=42.0")
    assert capacities(state) == {
        "plain": (44.444, "together"),
        "slow": (20, "measured"),
    }
    impossible = told(alone, f"{BOTH}, at_least_log_bytes_per_s=4000.0")
    assert capacities(impossible)["plain"] == (100, "calibrated")
    all_alone = told(alone, f"{FIRST}, alone=plain:90", f"{BOTH}, capacity_log_bytes_per_s=9.0")
    assert capacities(all_alone) == {"plain": (90, "measured"), "slow": (20, "measured")}
    ended = told(f"{BOTH}, capacity_log_bytes_per_s=35.0", alone)
    assert capacities(ended)["slow"] == (20, "measured")


def test_a_topic_without_records_takes_no_time() -> None:
    """So a figure for it and a measured one together says nothing about it."""
    state = told(
        f"{FIRST}, alone=plain:90",
        "speeds plain-0=40 plain-1=40 slow-0=0",
        f"{BOTH}, capacity_log_bytes_per_s=9.0",
    )
    assert capacities(state) == {"plain": (90, "measured"), "slow": (10, "calibrated")}


def test_a_small_topic_does_not_answer_for_a_large_one() -> None:
    """A slow minute of the large one was taken for the small one's: 1.7 kB/s, so `oversize`."""
    state = told(
        f"{FIRST}, alone=plain:90",
        "speeds plain-0=40 plain-1=40 slow-0=0.01",
        f"{BOTH}, capacity_log_bytes_per_s=60.0",
    )
    assert capacities(state) == {"plain": (90, "measured"), "slow": (10, "calibrated")}


def test_a_figure_without_partitions_or_speeds_teaches_nothing() -> None:
    """Nobody knows what it is about."""
    for line in (
        "consumer 2 reports nothing, capacity_log_bytes_per_s=5.0",
        "consumer 2 reports nothing",
    ):
        assert capacities(told(line)) == capacities(told())
    quiet = ("speeds plain-0=0 plain-1=0 slow-0=0", f"{BOTH}, capacity_log_bytes_per_s=5.0")
    assert capacities(told(*quiet)) == capacities(told())
    of_one = told(quiet[0], f"{SECOND}, capacity_log_bytes_per_s=5.0")
    assert of_one.capacities["slow"].bytes_per_s == 5
    assert measured_by_consumer(of_one, TWO) == 5


def test_on_trial_only_more_is_learned_of_a_topic() -> None:
    """A lower figure tells of contention."""
    teller = after(*TWO_TOPICS, f"{SECOND}, alone=slow:20")
    teller.state = replace(state_of(teller), growth_trial=GrowthTrial(1, 2, 50.0, 84.0))
    teller.tell(f"{SECOND}, alone=slow:5")
    assert state_of(teller).capacities["slow"].bytes_per_s == 20
    teller.tell(f"{SECOND}, alone=slow:40")
    assert state_of(teller).capacities["slow"].bytes_per_s == 40


def test_what_was_measured_is_kept_for_the_next_controller() -> None:
    """It wins over a new calibration; a new calibration over an older one."""
    teller = after(*TWO_TOPICS, f"{SECOND}, alone=slow:20", "tick +500")
    teller.tell("settings calibrated.plain=300 calibrated.slow=300")
    teller.tell("a controller starts with epoch 2 with its state file")
    known = state_of(teller).capacities
    assert known == {
        "slow": KnownCapacity(20, 20, 20, "measured"),
        "plain": KnownCapacity(300, 300, 300, "calibrated"),
    }


def test_what_was_measured_together_is_kept_too() -> None:
    """A calibration knows less of it than the group does."""
    teller = after(*TWO_TOPICS, f"{BOTH}, capacity_log_bytes_per_s=35.0", "tick +500")
    before = capacities(state_of(teller))
    assert {source for _, source in before.values()} == {"together"}
    teller.tell("settings calibrated.plain=300 calibrated.slow=300")
    teller.tell("a controller starts with epoch 2 with its state file")
    assert capacities(state_of(teller)) == before


@pytest.mark.parametrize(
    "row", [[1, 2, 3, "measured"], [5, 0, 9, "measured"], [5, 5, 5, "guessed"], [5, 5], "five"]
)
def test_a_saved_capacity_that_cannot_be_is_refused(row: object) -> None:
    """The state is rebuilt by synchronisation instead."""
    state = replace(told(), capacities={"t": KnownCapacity(5, 4, 6, "measured")})
    raw = encode_state(state)
    assert not isinstance(decode_state(raw, state.chosen), BrokenState)
    content = state_as_json(state) | {"capacities": {"t": row}}
    assert isinstance(read_content(content, state.chosen), BrokenState)


@pytest.mark.slow
def test_a_group_finds_its_size_by_itself() -> None:
    """3 MB/s are written and one consumer carries 1 MB/s: what is assumed is ten times too much."""
    group = ImaginedGroup(
        partitions(30, 0.1 * MB), carries_bytes_per_s=1 * MB, packing__capacity="auto"
    ).run(300)
    assert 4 <= group.working <= 5
    assert group.behind_bytes < 3 * MB
    assert usual_capacity(StepDraft(group.state, group.now_ms)) == pytest.approx(1 * MB)
