"""Every answer, of a group that is made up."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kit.page.made_up_group import (
    LOST_AT_S,
    MOVE_AT_S,
    MOVE_TAKES_S,
    REPLACED_AT_S,
    STOPPED_AT_S,
    MadeUpGroup,
)
from kit.page.record import (
    DOCUMENT,
    GROUP,
    RECORDED,
    as_read,
    documented,
    recorded_answers,
    watched,
)
from penstock.page.core.answers import Answers, HistoryQuery, TimelineQuery, failure
from penstock.page.core.frames import Frames, RunStory, whole_run
from penstock.page.core.listing import BadQueryError, PartitionQuery, listed
from penstock.page.core.stories import Series
from penstock.page.core.summary import summary, what_happens
from penstock.page.core.tables import TableHealth, TablesRead
from penstock.page.core.view import View
from penstock.page.core.watch import Watch
from penstock.page.process.routes import ROUTES


@pytest.fixture(scope="module")
def watch() -> Watch:
    """A few seconds into a plan, with one partition stopped."""
    return watched(MadeUpGroup(), MOVE_AT_S + 5)


@pytest.fixture(scope="module")
def ask(watch: Watch) -> Answers:
    assert watch.view is not None
    return Answers(watch, watch.view, GROUP)


def view_of(**changed: Any) -> View:
    return View({**as_read(MadeUpGroup(consumers=3, partitions=8).step()), **changed}, {})


def test_the_documents_show_what_is_answered() -> None:
    """The examples and the recorded answers are those of today's code; every route has one."""
    answers = recorded_answers()
    text = DOCUMENT.read_text(encoding="utf-8")
    assert documented(text, answers) == text
    for name, answer in answers.items():
        kept = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
        assert kept == json.loads(json.dumps(answer)), f"run kit.page.record: {name} has changed"
    for route in ROUTES:
        assert f"`{route}`" in text


def test_an_error_is_an_answer_too() -> None:
    """With a code for programs, and a sentence for people."""
    expected = {"error": True, "message": "There is none.", "code": "not_found"}
    assert failure("not_found", "There is none.") == expected


def test_the_glance(ask: Answers) -> None:
    """Figures that must agree with the snapshot, and a sentence with its reason."""
    status = ask.status()["status"]
    consumers, partitions = status["consumers"], status["partitions"]
    assert consumers["running"] == consumers["ready"] + consumers["ending"]
    assert consumers["fewest_possible"] <= consumers["needed"]
    states = ("owned", "moving", "starting", "stopping", "stopped", "unread")
    assert sum(partitions[one] for one in states) == partitions["total"] == 60
    assert (partitions["stopped"], partitions["oversize"]) == (1, 1)
    assert status["now"]["code"] == "over_capacity"
    assert "on the way to another consumer" in status["now"]["sentence"]
    assert status["speed"]["carried_bytes_per_s"] > 0
    assert not status["is_well"]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"phase": "Synchronize"}, "asks every consumer"),
        ({"phase": "Group Management"}, "leads the group to its plan"),
        ({"held_by_silence": {"consumers": [1, 2], "for_ms": 1}}, "2 consumers silent together"),
        ({}, "Nothing needs to change."),
    ],
)
def test_what_the_controller_does_in_words(changed: dict[str, Any], sentence: str) -> None:
    """For each state."""
    assert sentence in what_happens(view_of(**changed))["sentence"]


def test_a_backlog_is_told_in_the_words_of_penstock_status() -> None:
    """The page said that all is well while the lake was minutes behind."""
    waits = {"behind_records": 9_000, "carried_bytes_per_s": 500.0}
    shrinks = {"trend": "shrinking", "over_s": 30.0, "left_s": 600.0}
    well: dict[str, Any] = {"conditions": []}
    found = summary(view_of(**waits, **well, backlog=shrinks), fewest=1, needed=1)
    assert found["progress"] == "catching up: 500 B/s carried, about 10 min left"
    assert summary(view_of(**well), fewest=1, needed=1)["progress"] == "all is well"
    held = [{"condition": "held", "reason": "paused"}]
    assert summary(view_of(conditions=held), fewest=1, needed=1)["progress"] is None


def test_why_is_what_the_controller_says_now() -> None:
    """No reason of the past: the history has one, and it is that of an older plan."""
    older = view_of(phase="Group Management")
    assert any(one["code"] == "first_start" for one in older.snapshot["history"])
    assert (what_happens(older)["why"], what_happens(older)["code"]) == (None, None)
    reason = {"code": "over_capacity", "explanation": "consumer 2 is over capacity"}
    found = what_happens(view_of(phase="Group Management", reason=reason))
    assert (found["why"], found["code"]) == ("consumer 2 is over capacity", "over_capacity")
    without = {**older.snapshot}
    del without["reason"]  # a controller of an older version
    assert what_happens(View(without, {}))["why"] is None


def test_what_is_carried_needs_two_snapshots() -> None:
    """And begins anew with a controller that counts from 0; without counts it is unknown."""
    group, watch = MadeUpGroup(consumers=3, partitions=8), Watch()
    assert (watch.summary(), watch.newest_sample(), watch.view_at_unix_ms) == (None, None, None)
    watch.grow_old(1, "nothing was read yet")
    first = as_read(group.step())
    watch.add(first)
    assert watch.view is not None
    assert watch.view.carried == {}
    watch.add(as_read(group.step()))
    assert watch.view.carried[None] > 0
    assert watch.view.carried[1] > 0
    again = as_read(group.step())
    watch.add({**again, "carried_bytes": 5})
    assert watch.view.carried == {}
    for one in again["consumers"]:
        one.pop("carried_bytes")
    watch.add({**again, "at_unix_ms": again["at_unix_ms"] + 500, "carried_bytes": 10})
    assert watch.view.carried == {None: 10.0}
    without = as_read(group.step())
    del without["carried_bytes"]
    watch.add(without)
    assert watch.newest_sample() is not None


def test_the_same_snapshot_again_only_gets_older() -> None:
    """No second sample, no new decision; and without any news it says so."""
    watch, snapshot = Watch(), as_read(MadeUpGroup(consumers=3, partitions=8).step())
    assert watch.add(snapshot)
    assert watch.add({**snapshot, "age_s": 3.0}) == []
    assert watch.view is not None
    assert watch.view.snapshot["age_s"] == 3.0
    watch.grow_old(snapshot["at_unix_ms"] + 60_000, "it is silent")
    found = Answers(watch, watch.view, GROUP).status()["snapshot"]
    assert (found["age_s"], found["is_stale"], found["silence"]) == (60.0, True, "it is silent")


def test_consumers_and_their_segments(ask: Answers) -> None:
    """Every partition is in one bar, or among those without a consumer."""
    found = ask.consumers(with_partitions=True)
    inside = [one for row in found["consumers"] for one in row["segments"]]
    assert len(inside) + len(found["without_consumer"]) == 60
    assert [one["state"] for one in found["without_consumer"]] == ["stopped"]
    assert {one["state"] for one in inside} == {"owned", "moving"}
    assert all(one["to"] for one in inside if one["state"] == "moving")
    assert "segments" not in ask.consumers(with_partitions=False)["consumers"][0]
    assert ask.consumer(12_345) is None
    stranger = view_of()
    stranger.snapshot["consumers"][0]["partitions"].append("gone-1")
    row = stranger.consumer(1, with_partitions=True)
    assert row is not None
    assert row["segments"][-1]["load_bytes_per_s"] == 0.0


def test_a_consumer_that_is_gone_keeps_its_story() -> None:
    """Its states with their times, and the decisions that name it."""
    group = MadeUpGroup()
    watch = watched(group, LOST_AT_S + 2)
    snapshot = as_read(group.step())
    snapshot["consumers"] = [one for one in snapshot["consumers"] if one["consumer"] != 3]
    watch.add(snapshot)
    assert watch.view is not None
    found = Answers(watch, watch.view, GROUP).consumer(3)
    assert found is not None
    assert found["consumer"] is None
    assert [one["state"] for one in found["story"]["changes"]] == ["ready", "gone"]
    assert found["story"]["changes"][-1]["to_unix_ms"] is None
    assert "consumer 3 has been silent" in found["history"][0]["sentence"]


def test_a_partitions_story(ask: Answers) -> None:
    """Who had it when, its figures, and the decisions that name it."""
    found = ask.partition("stock.changes", 14)
    assert found is not None
    assert found["partition"]["stopped_reason"] == "undecodable"
    assert [one["state"] for one in found["story"]["changes"]] == ["owned", "stopped"]
    series = found["story"]["whole"]
    assert len(series["at_unix_ms"]) == len(series["end_offset"])
    assert [one["code"] for one in found["history"]] == ["partition_failed"]
    assert ask.partition("none", 0) is None
    begins = [one["from_unix_ms"] for one in found["story"]["changes"]]
    assert begins[1] - begins[0] == STOPPED_AT_S * 1000


def test_a_partition_that_vanished_is_forgotten() -> None:
    """Nothing stays in memory of a topic that was deleted."""
    group, watch = MadeUpGroup(consumers=3, partitions=8), Watch()
    watch.add(as_read(group.step()))
    later = as_read(group.step())
    name = next(iter(later["partitions"]))
    del later["partitions"][name]
    watch.add(later)
    assert watch.stories.of_partition(name) is None
    assert watch.stories.of_consumer(999) is None


def test_series_are_bounded() -> None:
    """Recent ones drop the oldest; whole ones drop every second point and double their step."""
    recent = Series(1, 1_000, 4, is_thinned=False)
    whole = Series(1, 1_000, 4, is_thinned=True)
    for second in range(20):
        for series in (recent, whole):
            series.add(second * 1_000, (float(second),))
            series.add(second * 1_000 + 1, (99.0,))  # sooner than the step
    assert recent.answer(("x",))["x"] == [16.0, 17.0, 18.0, 19.0]
    assert whole.answer(("x",))["x"] == [0.0, 8.0, 16.0]


def test_pages_of_partitions(ask: Answers) -> None:
    """All of them once, in order, whatever the order; filters by topic, consumer, state, mark."""
    for sort in ("name", "-name", "speed", "-speed", "-behind", "consumer"):
        seen, after = [], None
        while True:
            page = ask.partitions(PartitionQuery(sort=sort, limit=7, after=after))
            seen += [(one["topic"], one["partition"]) for one in page["partitions"]]
            after = page["next"]
            if after is None:
                break
        assert len(seen) == len(set(seen)) == page["total"] == 60
    names = [(one["topic"], one["partition"]) for one in _page(ask, sort="-name")]
    assert names == sorted(names, reverse=True)
    speeds = [one["write_speed_bytes_per_s"] for one in _page(ask, sort="-speed")]
    assert speeds == sorted(speeds, reverse=True)
    assert {one["topic"] for one in _page(ask, topic="orders")} == {"orders"}
    assert {one["consumer"] for one in _page(ask, consumer=2)} == {2}
    assert [one["partition"] for one in _page(ask, state="stopped")] == [14]
    assert [one["marks"] for one in _page(ask, state="oversize")] == [["oversize", "behind"]]
    with pytest.raises(BadQueryError, match="not a cursor"):
        ask.partitions(PartitionQuery(after="nonsense"))


def _page(ask: Answers, **query: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = ask.partitions(PartitionQuery(limit=100, **query))["partitions"]
    return rows


def test_unknown_figures_are_null_and_sorted_first() -> None:
    """Never 0: a partition whose speed is unknown is not one that nobody writes."""
    view = view_of()
    name = "clicks-1"
    view.snapshot["partitions"][name] = {
        "write_speed_bytes_per_s": None,
        "consumer": None,
        "status": "unread",
    }
    row = listed(view, PartitionQuery(sort="speed"))["partitions"][0]
    assert (row["write_speed_bytes_per_s"], row["behind_s"], row["behind_bytes"]) == (None,) * 3
    view.snapshot["partitions"][name]["behind_records"] = 0
    assert view.partition(name)["behind_bytes"] == 0
    assert View({**view.snapshot, "partitions": {}}, {}).longest_behind() is None


def test_the_plan_beside_the_present(ask: Answers) -> None:
    """Loads now and then add up to the same, and moves name both sides."""
    found = ask.plan(with_partitions=True)
    assert found is not None
    plan = found["plan"]
    loads = [
        sum(one[side]["load_bytes_per_s"] for one in plan["consumers"]) for side in ("now", "then")
    ]
    assert loads[0] == pytest.approx(loads[1])
    assert plan["consumers_then"] >= plan["consumers_at_least"]
    segments = [one for row in plan["consumers"] for one in row["then"]["segments"]]
    assert len(segments) == 60
    assert Answers(Watch(), ask.view, GROUP).plan(with_partitions=False) is None


def test_history_and_its_counts(ask: Answers) -> None:
    """Newest first; a filter narrows the list, not the counts."""
    whole = ask.history(HistoryQuery())
    times = [one["at_unix_ms"] for one in whole["history"]]
    assert times == sorted(times, reverse=True)
    few = ask.history(HistoryQuery(codes=frozenset({"plan_made"}), limit=1))
    assert (few["total"], len(few["history"])) == (3, 1)
    assert few["codes"] == whole["codes"]
    later = ask.history(HistoryQuery(since_unix_ms=times[0]))
    assert 0 < later["total"] < whole["total"]


def test_the_time_line_has_marks(ask: Answers) -> None:
    """Within its span, oldest first."""
    found = ask.timeline(TimelineQuery(points=50))["timeline"]
    kinds = [one["kind"] for one in found["marks"]]
    assert {"fault", "move", "note"} <= set(kinds)
    assert found["marks"][0]["at_unix_ms"] <= found["marks"][-1]["at_unix_ms"]
    begin = found["from_unix_ms"]
    short = ask.timeline(TimelineQuery(begin, begin + 60_000, 50))["timeline"]
    assert len(short["marks"]) < len(found["marks"])
    turned = ask.timeline(TimelineQuery(from_unix_ms=begin + 10**9, points=10))["timeline"]
    assert turned["from_unix_ms"] == turned["to_unix_ms"]
    alone = Answers(Watch(), ask.view, GROUP).timeline(TimelineQuery(points=10))["timeline"]
    assert alone["begin_unix_ms"] is None


def test_tables_name_their_problems() -> None:
    """Many small files, or a long way through the log."""
    healthy = TableHealth("orders", 10, (100, 300), 4, 5, 8, 100)
    assert (healthy.entries_since_checkpoint, healthy.small_files) == (2, 0)
    assert healthy.answer()["mean_file_bytes"] == 200
    assert healthy.answer()["is_healthy"]
    ill = replace(healthy, version=400, checkpoint_version=None, file_sizes=(1,) * 201)
    problems = ill.answer()["problems"]
    assert "201 small files" in problems[0]
    assert "401 log entries" in problems[1]
    assert replace(healthy, file_sizes=()).answer()["mean_file_bytes"] is None
    assert TablesRead(1, unreachable="no lake").answer()["message"] == "no lake"


def test_a_run_is_kept_in_frames(watch: Watch) -> None:
    """At most so many, spread over the whole run; the rest are whole answers."""
    group, live, frames = MadeUpGroup(consumers=3, partitions=8), Watch(), Frames(frames_max=4)
    frames.add(live, GROUP)
    assert whole_run(live, GROUP, frames, RunStory("nothing"), None)["answers"] == {}
    for _ in range(11):
        live.add(as_read(group.step()))
        frames.add(live, GROUP)
    seconds = [(one["at_unix_ms"] - frames.kept[0]["at_unix_ms"]) // 1000 for one in frames.kept]
    assert seconds == [0, 4, 8]
    story = RunStory("a run", ({"at_unix_ms": 1, "sentence": "killed"},), {"lost": "0"})
    run = whole_run(live, GROUP, frames, story, TablesRead(1))
    assert run["results"] == {"lost": "0"}
    assert len(run["answers"]["/v1/partitions"]["partitions"]) == 8
    assert "/v1/partitions/orders/0" in run["answers"]
    assert "/v1/tables" in run["answers"]
    assert "/v1/plan" not in run["answers"]
    assert json.dumps(run)


def test_a_large_group_has_no_story_of_each_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file would be too large to open."""
    monkeypatch.setattr("penstock.page.core.frames.PARTITIONS_MAX", 3)
    live, frames = Watch(), Frames()
    live.add(as_read(MadeUpGroup(consumers=3, partitions=8).step()))
    frames.add(live, GROUP)
    run = whole_run(live, GROUP, frames, RunStory("large"), None)
    assert not [path for path in run["answers"] if path.startswith("/v1/partitions/")]
    first = frames.kept[0]["answers"]["/v1/consumers?with=partitions"]["consumers"][0]
    assert "segments" not in first


def test_many_pairs_and_many_consumers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above a number, topics by consumer are left out; consumers that are gone are forgotten."""
    monkeypatch.setattr("penstock.page.core.watch.PAIRS_MAX", 2)
    monkeypatch.setattr("penstock.page.core.stories.CONSUMERS_MAX", 1)
    group, live = MadeUpGroup(consumers=3, partitions=8), Watch()
    live.add(as_read(group.step()))
    assert live.decisions.newest_number == len(list(live.decisions))
    assert live.timeline.newest is not None
    assert live.timeline.newest.by_both.keys == ()
    later = as_read(group.step())
    later["consumers"] = later["consumers"][-1:]
    live.add(later)
    assert live.stories.consumers() == [later["consumers"][0]["consumer"]]


def test_after_the_plan_all_is_calm() -> None:
    """The made-up group itself: it ends its moves, and replaces what was lost."""
    group = MadeUpGroup()
    seen = [group.step() for _ in range(MOVE_AT_S + MOVE_TAKES_S + 1)]
    assert seen[LOST_AT_S]["phase"] == "Group Management"
    assert seen[REPLACED_AT_S + 1]["phase"] == "Sentinel"
    assert seen[MOVE_AT_S]["moves"]
    assert seen[-1]["moves"] == []
    assert Path(RECORDED).is_dir()
