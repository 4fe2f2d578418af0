"""What `penstock status` and `history` print from the controller's files."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kit.controller.story import TWO_CONSUMERS
from kit.controller.written_status import written
from kit.lake.faulty_pipeline import ORDERS, Carried
from kit.program import invoked
from penstock.cli.status import NOT_WELL
from penstock.controller.process.status_file import deployment_shown
from penstock.deployment import DeploymentTemplate
from penstock.errors import PenstockError
from penstock.state_directory import StateDirectory

BEHIND = (
    *TWO_CONSUMERS,
    "consumer 1 reports orders-0@1.1 orders-1@1.2, behind_log_bytes=800 behind_records=8",
    "consumer 2 reports orders-2@1.3, behind_log_bytes=100 behind_records=1",
)


def as_data(*arguments: str) -> Any:
    return json.loads(invoked(*arguments, "-o", "json").stdout)


def test_status_shows_the_lag_in_records_and_seconds(tmp_path: Path) -> None:
    """Lag is shown per consumer and for the group; seconds are at the present write speed."""
    where = written(tmp_path, *BEHIND)
    found = as_data("status", *where)
    assert (found["behind_records"], found["behind_bytes"]) == (9, 900)
    assert found["behind_s"] == pytest.approx(900 / 120)
    assert [one["behind_s"] for one in found["consumers"]] == [10.0, 2.5]
    shown = invoked("status", *where)
    assert shown.exit_code == 0
    assert re.search(r" 8 +ready", shown.stdout)
    assert "behind 9 records, as much as is written in 7.5 s" in " ".join(shown.stdout.split())


def test_long_times_are_in_minutes(tmp_path: Path) -> None:
    """`behind ... 2303.0 s` is no time that a person knows; data keeps the seconds."""
    report = "consumer 1 reports orders-0@1.1 orders-1@1.2, behind_log_bytes=184240"
    where = written(tmp_path, *TWO_CONSUMERS, f"{report} behind_records=8")
    shown = invoked("status", *where).stdout
    assert "as much as is written in 25 min 35 s" in " ".join(shown.split())
    assert as_data("status", *where)["consumers"][0]["behind_s"] == 2303.0


UNREAD = (
    *TWO_CONSUMERS[:3],
    "logs orders-0=0..2000000 orders-1=100..80100",
    "speeds orders-0=0 orders-1=0",
)


def test_what_nobody_reads_is_behind(tmp_path: Path) -> None:
    """2.08 million records in partitions that no consumer has are behind: not 0."""
    where = written(tmp_path, *UNREAD, "tick +500")
    found = as_data("status", *where, "--set", f"lake.root={tmp_path / 'no-lake'}")
    assert found["behind_records"] == 2_080_000
    assert found["behind_bytes"] == 20_800_000
    shown = invoked("status", *where, "--set", f"lake.root={tmp_path / 'no-lake'}")
    assert "behind at most 2,080,000 records\n" in shown.stdout
    assert "unread: nobody reads 2 partitions: orders-0, orders-1" in shown.stdout
    assert shown.exit_code == NOT_WELL


def test_the_lake_tells_what_the_controller_does_not_know(tmp_path: Path) -> None:
    """A new controller knows no offset of a partition that nobody reads: the ledger has it."""
    carried = Carried(tmp_path / "lake", lambda *_: None)
    carried.carry(ORDERS[0], to=4)
    unread = ("logs orders-0=0..10 orders-1=0..10", "speeds orders-0=0 orders-1=0")
    where = written(tmp_path, *TWO_CONSUMERS[:3], *unread, "tick +500")
    status = json.loads((tmp_path / "status.json").read_text())
    status["topic_ids"] = {"orders": "id"}
    (tmp_path / "status.json").write_text(json.dumps(status))
    where += ["--set", f"lake.root={tmp_path / 'lake'}", "--set", "lake.group=g"]
    found = as_data("status", *where)
    assert (found["behind_records"], found["behind_bytes"]) == (16, 160)
    assert not found["behind_is_at_most"]
    assert found["partitions"]["orders-0"]["behind_records"] == 6
    assert "behind 16 records\n" in invoked("status", *where).stdout


def test_a_stopped_partition_is_counted_from_its_ledger_offset(tmp_path: Path) -> None:
    """Its consumer said how far it is carried; the end of the log is what the monitor measured.

    5 more were written since the other consumer looked.
    """
    where = written(
        tmp_path,
        *TWO_CONSUMERS,
        "consumer 1 reports orders-0@1.1+50/50 orders-1@1.2+70/70",
        "consumer 2 stopped orders-2@1.3+30, transformation_failed",
        "logs orders-0=0..50 orders-1=0..75 orders-2=0..1030",
        "speeds orders-0=40 orders-1=40 orders-2=40",
    )
    shown = invoked("status", *where)
    assert "behind 1,005 records," in shown.stdout
    assert "stopped: orders-2: transformation_failed" in shown.stdout
    assert as_data("status", *where)["conditions"] == [
        {"condition": "stopped", "reason": "orders-2: transformation_failed"}
    ]
    assert shown.exit_code == NOT_WELL


def test_a_group_that_is_well_says_so(tmp_path: Path) -> None:
    """Without a condition the exit code is 0 and the list is empty."""
    (tmp_path / "calm").mkdir()
    shown = invoked("status", *written(tmp_path / "calm", *TWO_CONSUMERS))
    assert shown.stdout.splitlines()[0] == "all is well"
    where = written(tmp_path, *BEHIND)
    shown = invoked("status", *where)
    assert shown.stdout.startswith("too early to tell: 9 records wait")
    assert shown.exit_code == 0
    assert as_data("status", *where)["conditions"] == []


def test_a_fault_that_repeats_is_one_line_of_the_history(tmp_path: Path) -> None:
    """Its line says how often it came and for how long."""
    lines = ["consumer 2 has an incident: no room"] * 3
    where = written(tmp_path, *TWO_CONSUMERS, *lines)
    shown = " ".join(invoked("history", *where).stdout.split())
    assert shown.count("no room") == 1
    assert "(3 times in 0 s)" in shown


def test_a_lag_without_writing_has_no_seconds(tmp_path: Path) -> None:
    """Without a write speed, the lag is shown in records only."""
    where = written(tmp_path, *BEHIND, "speeds orders-0=0 orders-1=0 orders-2=0")
    assert as_data("status", *where)["behind_s"] is None
    assert "behind 9 records\n" in invoked("status", *where).stdout


def test_one_of_a_thing_is_singular(tmp_path: Path) -> None:
    """`status` and `plan` say 1 partition and 1 consumer, and 3 partitions and 2 consumers."""
    where = written(
        tmp_path,
        "a controller starts with epoch 1",
        "deployed:",
        "deployed:",
        "speeds a-0=10",
        "tick +500",
        "packed 1: a-0",
        "consumer 1 reports",
        "consumer 1 started a-0@1.1",
    )
    assert "written to 1 partition, 1 consumer, behind" in invoked("status", *where).stdout
    assert "1 consumer now, 1 then, at least 1 needed" in invoked("plan", *where).output
    where = written(tmp_path, *TWO_CONSUMERS)
    assert "written to 3 partitions, 2 consumers, behind" in invoked("status", *where).stdout


def test_bars_are_filled_with_partitions(tmp_path: Path) -> None:
    """Two partitions of 40 in a capacity of 100: eight blocks each, and four dots."""
    shown = invoked("status", *written(tmp_path, *TWO_CONSUMERS)).stdout
    assert "█" * 8 + "▓" * 8 + "·" * 4 in shown
    assert "█" * 8 + "·" * 12 in shown


def test_one_is_not_counted_as_many(tmp_path: Path) -> None:
    """A group of one partition on one consumer is described in the singular."""
    lines = (
        *TWO_CONSUMERS[:3],
        "speeds orders-0=40",
        "tick +500",
        "packed 1: orders-0",
        "consumer 1 reports",
        "consumer 1 started orders-0@1.1",
    )
    where = written(tmp_path, *lines)
    shown = " ".join(invoked("status", *where).stdout.split())
    assert "40 B/s written to 1 partition, 1 consumer," in shown
    planned = invoked("plan", *where)
    capacity, said, costs = planned.stderr.splitlines()
    assert capacity == "One consumer carries 100 B/s (packing.capacity)."
    assert said == "1 consumer now, 1 then, at least 1 needed; 0 partitions would move."
    assert costs == (
        "99% of the records within 10 s (objective.freshness): 1 consumer and 0 spares. Within "
        "5 s: 1 consumer and 0 spares. Within 20 s: 1 consumer and 0 spares."
    )
    assert planned.stdout == ""


def test_old_decisions_have_a_short_age(tmp_path: Path) -> None:
    """They age while the controller is silent, and are given in minutes, hours or days."""
    where = written(tmp_path, *TWO_CONSUMERS, age_s=7_300)
    assert "2 h ago" in invoked("history", *where).stdout
    assert all(one["age_ms"] >= 7_300_000 for one in as_data("history", *where))
    assert as_data("status", *where)["measurement_age_ms"] >= 7_300_000


def test_moves_in_progress_are_shown(tmp_path: Path) -> None:
    """A move shows its partition, both consumers and its state."""
    lines = (*TWO_CONSUMERS[:-1],)  # the last start is not yet acknowledged
    where = written(tmp_path, *lines)
    assert "moving 1: orders-2 2->2 (starting)" in invoked("status", *where).stdout
    assert as_data("status", *where)["moves"] == [
        {"partition": "orders-2", "at": 2, "to": 2, "status": "starting"}
    ]


def test_a_silent_controller_is_called_silent(tmp_path: Path) -> None:
    """Its last status is shown with its age, and the plan by it; the exit code is 1."""
    where = written(tmp_path, *TWO_CONSUMERS, age_s=200)
    shown = invoked("status", *where)
    assert shown.exit_code == 1
    assert "The controller has not reported for 3 min." in shown.stdout
    found = as_data("status", *where)
    assert found["is_stale"]
    assert 199 < found["age_s"] < 260
    planned = invoked("plan", *where)
    assert planned.exit_code == 1
    assert "has not reported for 3 min" in planned.stderr


def test_a_group_that_was_stopped_is_not_called_well(tmp_path: Path) -> None:
    """Right after the stop its last status is fresh; nobody leads all the same."""
    shown = invoked("status", *written(tmp_path, *TWO_CONSUMERS, age_s=2, has_ended=True))
    assert shown.exit_code == 1
    assert "The controller was stopped in order 2 s ago." in " ".join(shown.stdout.split())


def test_who_starts_the_group_is_named(tmp_path: Path) -> None:
    """It takes a while until the controller writes, the first time and after a stop."""
    where = ["--set", f"controller.directory={tmp_path}"]
    with StateDirectory(tmp_path / "up", "up", holder="process 7 since noon: penstock up"):
        missing = invoked("status", *where)
        assert "yet: it is being started (process 7 since noon: penstock up)" in str(
            missing.exception
        )
        shown = invoked("status", *written(tmp_path, *TWO_CONSUMERS, age_s=90))
        starts = "The group is being started (process 7 since noon: penstock up)."
        assert starts in " ".join(shown.stdout.split())
    nobody = invoked("status", "--set", f"controller.directory={tmp_path}/elsewhere").exception
    assert isinstance(nobody, PenstockError)
    assert nobody.remedy.startswith("Start `penstock up`")


def test_a_group_that_is_being_stopped_is_not_called_starting(tmp_path: Path) -> None:
    """After Ctrl-C the controller ends first; consumers and servers take their time."""
    where = ["--set", f"controller.directory={tmp_path}"]
    with StateDirectory(tmp_path / "up", "up", holder="process 7") as held:
        held.say_ending()
        missing = str(invoked("status", *where).exception)
        assert "the group is being stopped (process 7)" in missing
        assert "being started" not in missing
        where = written(tmp_path, *TWO_CONSUMERS, age_s=2, has_ended=True)
        shown = " ".join(invoked("status", *where).stdout.split())
        assert "The group is being stopped (process 7)." in shown
        assert "being started" not in shown
        found = as_data("status", *where)
        assert (found["starts_now"], found["stops_now"]) == (None, "process 7")


def test_pauses_are_shown_with_their_end_and_reason(tmp_path: Path) -> None:
    """A pause shows its direction, its end and its reason."""
    pause = "request r1: pause direction=down until_unix_ms=4102444800000 reason=sale"
    where = written(tmp_path, *TWO_CONSUMERS, pause)
    shown = " ".join(invoked("status", *where).stdout.split())
    assert "paused (down) until 21" in shown or "paused (down) until 20" in shown
    assert ": sale" in shown
    assert as_data("status", *where)["pauses"] == [
        {"direction": "down", "until_unix_ms": 4102444800000, "reason": "sale"}
    ]


def test_history_shows_decisions_and_reasons(tmp_path: Path) -> None:
    """The newest decision comes last, and only the requested number is shown."""
    where = written(tmp_path, *TWO_CONSUMERS)
    decisions = as_data("history", *where)
    assert decisions[0]["code"] == "first_start"
    (last,) = as_data("history", *where, "--last", "1")
    assert last["age_ms"] >= decisions[-1]["age_ms"]  # it was read a moment later
    ages = {name: last[name] for name in ("age_ms", "first_age_ms")}
    assert last == {**decisions[-1], **ages}
    shown = " ".join(invoked("history", *where).stdout.split())
    assert "no consumer reads orders-0" in shown
    assert "unread_partition" not in shown
    assert "0 moves" not in shown


def test_names_are_not_cut_at_80_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither codes nor reasons of the history, nor the figures of a consumer."""
    monkeypatch.setenv("COLUMNS", "80")
    where = written(tmp_path, *TWO_CONSUMERS)
    for command in ("status", "history"):
        shown = invoked(command, *where).stdout
        assert "…" not in shown
        assert "..." not in shown
        assert "partition_appeared" in shown
    assert "80 of 100 B/s" in " ".join(invoked("status", *where).stdout.split())


def test_status_shows_a_roll_out_and_how_pods_are_made(tmp_path: Path) -> None:
    """How many are replaced, by whose wish, and which image and settings new ones get."""
    where = written(tmp_path, *TWO_CONSUMERS, "request u1: update", "the new deployment works")
    file = tmp_path / "status.json"
    status = json.loads(file.read_text(encoding="utf-8"))
    template = DeploymentTemplate(
        1,
        settings_file="penstock-2",
        settings_digest="old",
        failed_digest="new",
        pod_plan={"settings": {"image": "registry/penstock:2"}},
    )
    status["deployment"] = deployment_shown(template)
    file.write_text(json.dumps(status), encoding="utf-8")
    shown = " ".join(invoked("status", *where).stdout.split())
    assert "rolling out version 1 (u1), 0 of 2 replaced" in shown
    assert "version 1, image registry/penstock:2, settings penstock-2; 1 other version" in shown
    assert "`penstock settings roll-out` tries it again" in shown
