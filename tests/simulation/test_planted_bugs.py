"""Each planted bug is caught by the detectors that docs/development/invariants.md lists."""

import importlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from kit.consumer.consumer_script import a_query_waits_for_the_commands_before_it
from kit.controller.planted_bugs import BUGS
from kit.controller.story import replayed
from kit.generated_files import ROOT
from kit.planted_bug import PlantedBug
from penstock.controller.core.invariants import InvariantError
from penstock.laboratory.exhaustive_model.search import explore
from penstock.laboratory.protocol_simulation.checkers import ViolationError
from penstock.laboratory.protocol_simulation.run_scenario import run
from penstock.laboratory.protocol_simulation.scenario import scenario

pytestmark = pytest.mark.slow

# What `pytest.raises` raises when nothing was raised.
NotRaisedError: type[BaseException] = pytest.fail.Exception

STORIES = ROOT / "tests" / "stories"
BEHAVIOUR = ROOT / "tests" / "behaviour"

# Where each is caught quickest. Others may catch it too; these are checked every time.
CAUGHT_BY: dict[str, tuple[str, ...]] = {
    "start before stop": ("story 06", "small group"),
    "stop not waited for": ("story 06", "small group", "seed 2"),
    "epoch check dropped": ("seed 3", "small group"),
    "highest offset wins": ("seed 27",),
    "partition forgotten": ("story 01", "seed 0"),
    "epoch used again": ("story 01", "seed 1"),
    "busy consumer deleted": ("story 01", "small group", "seed 0"),
    "waits for ever": ("story 23", "seed 67"),
    "answers before its commands": ("script",),
    "stops in mid-batch": ("seed 0",),
    "late messages believed": ("seed 141",),
    "former incarnation believed": ("story 12", "seed 141"),
    "report acknowledges too much": ("story 31",),
    "clock put off": ("seed 0",),
    "sends before it saves": ("story 01", "small group", "seed 0"),
    "ended epochs forgotten": ("seed 30",),
    "vanished still read": ("seed 9",),
    "refusal swallowed": ("seed 27",),
    "put off for ever": ("seed 0",),
    "ledger not asked again": ("seed 89",),
    "Spark not started again": ("seed 20",),
    "new topic not noticed": ("seed 66", "seed 95"),
    "two leaders": ("story 18", "seed 36"),
    "steps down by hearsay": ("story 59", "seed 13"),
    "forged orders obeyed": ("test_what_the_leader_did_not_write_is_refused", "seed 13"),
    "stops are not sent": ("story 06",),
    "stop events ignored": ("story 06",),
    "listing not repeated": ("story 35", "seed 2"),
    "silence by the clock": ("test_silence_is_counted_in_heartbeats_that_came_back",),
    "any heartbeat counts": ("test_a_heartbeat_of_another_controller_does_not_let_time_pass",),
    "nobody is excused": ("story 42", "story 45", "seed 73"),
    "excused for ever": ("test_who_says_why_is_waited_for_and_no_longer_than_patience",),
    "still starting not believed": ("story 44", "seed 49"),
    "starts not learned": ("story 44",),
    "all given up together": ("story 43",),
    "held for ever": ("story 43",),
    "quiet ones not counted": ("test_consumers_that_fall_silent_one_after_another_are_held",),
    "every end in vain": ("test_a_spare_that_stayed_up_has_not_ended_in_vain",),
    "confirmed death not used": ("story 46",),
    "who starts must answer": ("story 47",),
    "who waits must answer": ("story 47",),
    "broken table blamed on its consumer": (
        "test_after_patience_it_is_stopped_and_started_anew",
        "seed 34 S14",
    ),
    "broken table holds answers back": (
        "test_a_query_does_not_wait_for_a_table_that_cannot_be_read",
        "seed 481 S14",
    ),
    "named start counts as read": ("test_a_new_controller_learns_that_it_only_starts",),
    "wait not told": ("test_a_partition_that_kafka_does_not_answer_for_is_waited_for",),
    "batch not told": ("test_a_report_names_the_running_batch",),
    "wait never ends": ("test_a_partition_that_kafka_does_not_answer_for_is_waited_for",),
    "empty looks without a pause": ("test_idle_looks_back_off",),
    "batch not noted": (
        "test_a_stop_waits_for_the_running_batch_and_others_go_on",
        "seed 0",
    ),
    "unknown outcome read on": (
        "test_an_unknown_outcome_is_settled_by_the_ledger_before_reading_on",
        "seed 0",
    ),
    "stopped twice": ("test_a_failure_of_what_was_stopped_meanwhile_is_still_reported",),
    "older answer used": ("test_an_answer_for_an_older_start_is_ignored_and_asked_again",),
    "look-up repeated at once": ("test_a_failed_read_is_repeated_at_growing_intervals",),
    "retried at once": ("test_a_put_off_partition_waits_with_growing_pauses_and_the_others_go_on",),
    "wait not cut short": ("test_an_outage_ends_for_all_at_once",),
    "outage counts as own": ("test_a_server_that_is_away_at_first_is_waited_for",),
    "absent server ends the process": ("test_a_server_that_is_away_at_first_is_waited_for",),
    "ledger offset not moved": ("seed 1",),
    "lost Spark counts as up": (
        "test_a_lost_server_is_started_again_with_short_pauses",
        "seed 9",
    ),
    "lost JVM endured": ("test_a_lost_jvm_of_our_own_ends_the_process_after_three_batches",),
    "shutdown leaves its batch": ("test_a_shutdown_waits_for_the_running_batch", "seed 3"),
    "shutdown waits for ever": ("test_a_batch_that_would_not_end_within_the_grace_is_dropped",),
    "never behind": ("test_a_group_is_behind_beyond_what_is_tolerated",),
    "floor not raised": ("test_a_number_is_used_again_only_by_a_later_incarnation",),
    "answers of any plan": ("test_an_answer_of_an_older_plan_is_not_taken",),
    "stale for hours": ("test_an_old_measurement_moves_nothing",),
    "highest capacity": ("test_the_usual_capacity_is_the_median",),
    "costs forgotten": ("test_a_partition_counts_by_the_time_that_it_costs",),
    "bounds believed": ("test_keeping_up_does_not_lower_a_capacity",),
    "every figure counts": ("test_a_figure_that_differs_little_changes_nothing",),
    "measured not kept": ("test_what_was_measured_is_kept_for_the_next_controller",),
    "mixed batches count": ("test_only_a_batch_of_one_warm_topic_shows_its_capacity",),
    "session never cold": ("test_a_new_spark_session_is_cold_again",),
    "always alone": ("test_while_behind_one_topic_after_the_other_is_measured_alone",),
    "backlog never cleared": ("test_a_backlog_that_is_gone_no_longer_counts",),
    "backlog without bound": (
        "test_a_backlog_is_counted_once_while_a_plan_runs",
        "seed 3 L6",
    ),
    "backlog of former holders": ("test_the_backlog_of_a_moved_partition_stays_behind",),
    "nothing set aside": (
        "test_a_hot_partition_does_not_decide_for_the_others",
        "seed 60 L6",
    ),
    "newest speed established": (
        "test_one_measurement_of_a_slow_monitor_establishes_nothing",
        "test_one_absurd_measurement_of_a_slow_monitor_creates_nothing",
    ),
    "highest forgotten": (
        "test_the_highest_speed_counts_for_its_time",
        "seed 59 L7",
    ),
    "any move is worthwhile": ("test_a_move_that_relieves_nobody_is_not_made",),
    "plans outlive their reason": ("test_a_plan_whose_reason_is_gone_is_dropped",),
    "wanted for ever": ("test_consumers_of_an_overtaken_plan_are_reused",),
    "growth not compared": (
        "test_growth_that_does_not_help_is_taken_back",
        "seed 2533 L8",
    ),
    "repair counts as growth": ("test_who_takes_the_place_of_a_lost_one_is_no_growth",),
    "stays too small": ("seed 4 L6",),
    "late heartbeat dated by the newest": (
        "test_what_was_carried_is_dated_by_the_heartbeat_behind_it",
    ),
    "contention learned": (
        "test_on_trial_only_more_is_learned",
        "test_on_trial_only_more_is_learned_of_a_topic",
    ),
    "grown size not confirmed": ("test_a_grown_group_learns_that_its_consumers_became_slower",),
    "any size confirmed": (
        "test_a_limit_that_is_reached_again_and_again_does_not_lower_the_capacity",
    ),
    "failed number again": ("test_a_failed_number_is_used_again_after_its_wait",),
    "oversize stretches all": (
        "test_with_a_binding_maximum_all_consumers_are_used_beside_a_hot_partition",
    ),
    "overload since ever": ("test_over_capacity_may_have_to_last",),
    "caught up unnoticed": ("test_a_group_that_has_caught_up_looks_for_fewer_at_once",),
    "parts share numbers": (
        "test_each_part_of_a_report_has_a_number_and_the_next_message_another",
    ),
    "ending read on": ("test_what_ends_is_not_read_on",),
    "batch read again": ("test_what_is_in_a_batch_is_not_read_again",),
    "unknown sizes asked rarely": ("test_log_sizes_are_read_again_soon_while_one_is_unknown",),
    "cold batch counts": ("test_the_first_batch_teaches_nothing",),
    "any batch shows capacity": ("test_capacity_is_unknown_until_there_was_a_backlog",),
    "allowance without bound": ("test_an_allowance_fills_with_time_up_to_a_bound",),
    "names go first": ("test_the_longest_waiting_go_first_when_not_all_fit",),
    "incarnation by the clock": ("test_a_clock_that_was_put_back_gives_no_old_incarnation",),
    "mailbox forgotten": ("test_a_mailbox_position_that_makes_no_sense_is_left_out",),
    "no start without Spark": ("seed 96 L7",),
    "periods of nothing": ("test_durations_of_the_settings_are_milliseconds_in_the_core",),
    "foreign code rolled out": ("test_a_new_settings_file_allows_what_it_names",),
    "pauses forgotten": ("story 48",),
    "requests forgotten": ("story 48",),
    "roll-out forgotten": ("story 48",),
    "dropped while behind": ("test_a_plan_is_kept_while_the_group_is_behind",),
    "backlog shared evenly": ("test_a_backlog_is_shared_by_the_unread_offsets",),
    "wishes beyond the maximum": ("test_the_maximum_binds_everywhere",),
    "spares beyond the maximum": ("test_spares_go_when_the_maximum_is_lowered",),
    "pauses without bound": ("test_pauses_are_bounded_and_one_sided",),
    "resume ends both": ("test_pauses_are_bounded_and_one_sided",),
    "others take over": ("story 22",),
    "bad deployment kept": (
        "story 56",
        "test_only_the_first_fault_is_told",
    ),
    "roll-out does not wait": (
        "story 57",
        "test_a_new_consumer_that_carries_lets_the_next_one_have_its_turn",
    ),
    "refused deployment rolled out": ("story 56",),
    "roll-back forgotten": ("test_a_roll_back_goes_on_after_a_restart",),
    "old spare replaces": ("story 22",),
    "overrides not saved": ("test_what_matters_comes_back",),
    "pauses not saved": ("test_what_matters_comes_back", "story 48"),
    "another option is changed": ("test_a_request_changes_options_in_their_own_units",),
    "milliseconds as seconds": ("test_a_request_changes_options_in_their_own_units",),
    "moves not shown": ("test_a_group_in_the_middle_of_a_move",),
    "shared silence not shown": ("test_consumers_that_fall_silent_one_after_another_are_held",),
    "any transition": ("test_only_a_transition_of_the_table_is_made",),
    "maximum not checked": ("test_s7_the_maximum_is_a_maximum",),
    "stops not checked": ("test_s4_started_anew_before_the_stop",),
    "answers not recorded": ("story 16",),
    "idle go at once": ("test_idle_consumers_stay_for_a_grace",),
    "packed without consumers": ("test_no_consumer_to_be_had",),
    "first batch not waited for": ("test_a_first_batch_is_waited_for",),
    "judged across a gap": ("test_nothing_is_judged_across_a_gap",),
    "all topics named": ("test_many_topics_are_not_all_named",),
    "measured with the former one": ("test_a_new_transformation_makes_the_capacity_an_assumption",),
    "moving called unread": ("test_a_partition_that_moves_is_not_called_unread",),
    "history without bound": ("test_the_history_stays_bounded",),
    "planned by bytes": ("test_a_plan_from_a_status_packs_weighted_and_shows_real_bytes",),
    "clock of UTC": ("test_the_clock_is_that_of_the_time_zone",),
    "excluded times ignored": ("test_the_group_does_not_shrink_in_that_time",),
    "freshest told": ("test_a_scrape_tells_it_for_partitions_and_topics",),
    "oldest end forgotten": (
        "test_a_long_backlog_is_remembered_with_few_marks_and_never_too_young",
    ),
    "clock alone decides": ("test_clocks_that_differ_and_one_that_was_set_back_are_heard",),
    "dropped without a reason": ("test_saved_overrides_that_no_longer_make_sense_are_dropped",),
    "one slow start counts": ("test_slow_starts_count_when_there_were_three",),
    "objectives cost the same": ("test_a_tighter_objective_costs_more",),
    "grows while paused": ("test_a_repair_while_growth_is_paused_uses_those_there_are",),
    "start rolled out twice": ("test_a_restart_before_it_was_tried_begins_anew",),
    "starting not counted": ("test_consumers_are_counted_by_what_they_are",),
    "removed records wait": ("test_what_retention_removed_waits_no_more",),
    "log always busy": ("test_batches_are_further_apart_while_many_write_the_table",),
    "limit not told": ("test_a_limited_consumer_carries_no_more_than_its_limit",),
    "only reports are due": ("test_idle_looks_back_off",),
    "no rest after upkeep": ("test_a_rest_is_ten_times_the_processor_time",),
}


def story(number: str) -> Path:
    (path,) = STORIES.glob(f"{number}-*.story")
    return path


@cache
def behaviour_texts() -> dict[Path, str]:
    return {
        path: path.read_text(encoding="utf-8")
        for part in ("consumer", "controller", "packing")
        for path in sorted((BEHAVIOUR / part).glob("test_*.py"))
    }


def behaviour_test(name: str) -> Callable[[], None]:
    """A test of what only decides, by its name."""
    (path,) = [path for path, text in behaviour_texts().items() if f"def {name}(" in text]
    test = vars(importlib.import_module(f"behaviour.{path.parent.name}.{path.stem}"))[name]
    found: Callable[[], None] = test
    return found


# Imported before any bug is planted: a module imported while one is would keep the bug.
BEHAVIOUR_TESTS = {
    name: behaviour_test(name)
    for names in CAUGHT_BY.values()
    for name in names
    if name.startswith("test_")
}


def finding(detector: str) -> str | None:
    """What the detector finds, or None."""
    kind, _, which = detector.partition(" ")
    if kind == "story":
        text = story(which).read_text(encoding="utf-8")
        try:
            return None if replayed(text) == text else "the trace differs"
        except (InvariantError, AssertionError) as error:
            return _short(error)
    if kind == "seed":
        seed, _, invariant = which.partition(" ")
        outcome = run(scenario(int(seed)))
        told = outcome.explanation.partition(": ")[2][:90]
        return told if outcome.verdict == "red" and f": {invariant}" in f": {told}" else None
    try:
        if kind.startswith("test_"):
            BEHAVIOUR_TESTS[kind]()
        elif kind == "script":
            a_query_waits_for_the_commands_before_it()
        else:
            explore(1, records=1)
            explore(2, records=0)
    except (InvariantError, ViolationError, AssertionError, ValueError, NotRaisedError) as error:
        return _short(error)
    return None


def _short(error: BaseException) -> str:
    return str(error).partition("\n")[0][:90]


@pytest.fixture
def planted(request: pytest.FixtureRequest) -> Iterator[PlantedBug]:
    with pytest.MonkeyPatch.context() as patch:
        bug: PlantedBug = request.param
        bug.plant(patch)
        yield bug


@pytest.mark.parametrize("planted", BUGS, indirect=True, ids=lambda bug: bug.name)
def test_the_bug_is_caught(planted: PlantedBug) -> None:
    """Every listed detector finds the bug."""
    for detector in CAUGHT_BY[planted.name]:
        assert finding(detector) is not None, f"{detector} does not see: {planted.explanation}"


@pytest.mark.parametrize("detector", sorted({d for ds in CAUGHT_BY.values() for d in ds}))
def test_without_a_bug_nothing_is_found(detector: str) -> None:
    """No detector finds anything without a bug."""
    assert finding(detector) is None


def test_every_planted_bug_has_a_detector() -> None:
    """Every planted bug has a detector, and there are at least a hundred bugs."""
    assert {bug.name for bug in BUGS} == set(CAUGHT_BY)
    assert len(BUGS) >= 100


# Files of which no sabotage can be found, because nothing in them decides.
ONLY_TYPES = {
    "penstock.controller.core.inputs": "the types of what comes in",
    "penstock.controller.core.effects": "the types of what is to be done",
    "penstock.consumer.core.inputs": "the types of what comes in",
    "penstock.consumer.core.effects": "the types of what is to be done",
}


def test_every_file_of_the_cores_is_sabotaged() -> None:
    """In each file of the controller's and the consumer's core that decides, a bug is planted."""
    of_the_cores = {
        f"penstock.{part}.core.{path.stem}"
        for part in ("consumer", "controller")
        for path in (ROOT / "src" / "penstock" / part / "core").glob("*.py")
        if path.stem != "__init__"
    }
    assert of_the_cores >= ONLY_TYPES.keys()
    sabotaged = frozenset[str]().union(*(bug.modules() for bug in BUGS))
    assert sorted(of_the_cores - sabotaged - ONLY_TYPES.keys()) == []
