"""A status that somebody else wrote, or that is damaged: each command says so, without a traceback.

Whoever may write to the status topic, or to the controller's folder, decides what commands read.
"""

import copy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from behaviour.cli.test_status_source import InKafka, in_file, read
from kit.controller.story import TWO_CONSUMERS
from kit.controller.whole_status import whole_status
from kit.program import invoked
from penstock.cli import group_status, recommend
from penstock.cli.group_status import with_ledger
from penstock.cli.live_view import live_view
from penstock.cli.status import rendered
from penstock.cli.watching import ChangesInLines
from penstock.controller.core.capacity_text import capacity_text
from penstock.controller.core.dry_run import (
    dry_run,
    priced_of_question,
    problem_of_question,
    weights_of_question,
)
from penstock.controller.core.settings import controller_settings
from penstock.controller.core.told_status import CarriedSpeed
from penstock.controller.process.status_file import deployment_shown
from penstock.deployment import DeploymentTemplate
from penstock.errors import PenstockError
from penstock.kafka_io.status_topic import SeenStatus
from penstock.settings import Settings, changed_settings

MOVING = (
    *TWO_CONSUMERS,
    "request u1: update",
    "the new deployment works",
    "3000 ms pass",
    "speeds orders-0=40 orders-1=80 orders-2=10",
    "consumer 1 reports orders-0@1.1 orders-1@1.2, behind_log_bytes=65 behind_records=13",
)


def whole(*lines: str) -> dict[str, Any]:
    shown = deployment_shown(DeploymentTemplate(1, image="registry/penstock:2"))
    return whole_status(*(lines or MOVING), is_degraded=True, deployment=shown)


GOOD = whole()


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in whole().items() if name not in names}


DAMAGED = [
    (without("partitions"), "status.partitions"),
    (whole() | {"partitions": []}, "status.partitions"),
    (whole() | {"consumers": [7]}, "status.consumers"),
    (whole() | {"history": None}, "status.history"),
    (whole() | {"question": {}}, "question.load_bytes_per_s"),
    (whole() | {"capacity": {"topics": {"orders": {}}}}, "capacity"),
    (whole() | {"conditions": 3}, "status.conditions"),
    (whole() | {"roll_out": {"fault": ""}}, "roll_out"),
    ({"at_unix_ms": round(time.time() * 1000)}, "status."),
]


@pytest.mark.parametrize("command", ["status", "plan", "history"])
@pytest.mark.parametrize(("damaged", "named"), DAMAGED)
def test_a_command_says_what_is_wrong_with_the_file_and_what_to_do(
    tmp_path: Path, command: str, damaged: dict[str, Any], named: str
) -> None:
    """It was a KeyError, or a TypeError. The file is named, and the first field that is wrong."""
    in_file(tmp_path, damaged | {"at_unix_ms": round(time.time() * 1000)})
    done = invoked(command, "--set", f"controller.directory={tmp_path}")
    error = done.exception
    assert isinstance(error, PenstockError), error
    assert error.exit_code == 1
    assert str(tmp_path / "status.json") in error.message
    assert named in error.message
    assert "release" in error.remedy
    assert not done.stdout


@pytest.mark.parametrize(("damaged", "named"), DAMAGED)
def test_a_status_in_kafka_is_looked_at_too(
    tmp_path: Path, damaged: dict[str, Any], named: str
) -> None:
    """The topic is named: who may write to it is the question."""
    with pytest.raises(PenstockError) as refused:
        read(tmp_path, InKafka(SeenStatus(damaged, None, 3, 1.0)))
    assert "data-engineering-status" in refused.value.message
    assert named in refused.value.message


@pytest.mark.parametrize(
    "more", [{"controller_epoch": "x"}, {"controller_epoch": None}, {"has_ended": 1}, {}]
)
def test_an_old_file_that_is_damaged_does_not_hide_what_kafka_has(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    """What an earlier release left in the folder counts for nothing beside newer news."""
    in_file(tmp_path, {"at_unix_ms": 5, **more})
    assert read(tmp_path, InKafka(SeenStatus(whole(), None, 3, 1.0)))["source"] == "kafka"


def test_a_damaged_status_in_kafka_does_not_fail_beside_an_old_file(tmp_path: Path) -> None:
    """Which of the two is newer cannot be told by one that says no time."""
    in_file(tmp_path, whole() | {"at_unix_ms": 5})
    damages: list[dict[str, Any]] = [{"at_unix_ms": "x"}, {"controller_epoch": []}]
    for damage in damages:
        read(tmp_path, InKafka(SeenStatus(whole() | damage, None, 3, 1.0)))


def test_a_recommendation_goes_on_without_a_damaged_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says that what the group has measured is not known."""
    capacity = whole()["capacity"]
    in_file(tmp_path, whole() | {"capacity": capacity | {"topics": {"orders": {"source": "x"}}}})
    settings = changed_settings(Settings(), {"controller.directory": str(tmp_path)})
    known = recommend._known_to_carry(settings, controller_settings(settings), {})
    assert not known.by_topic
    assert "cannot be understood" in " ".join(capsys.readouterr().err.split())


def test_a_status_of_an_older_release_is_shown(tmp_path: Path) -> None:
    """It lacks what came later: the commands show what it has."""
    later = (
        *("capacity", "carried_bytes", "carried_bytes_per_s", "batch_s", "backlog", "topic_ids"),
        *("objective_freshness_s", "reason", "deployment"),
    )
    status = without(*later)
    for name in ("objective", "weights"):
        del status["question"][name]
    in_file(tmp_path, status)
    for command in ("status", "history", "plan"):
        done = invoked(command, "--set", f"controller.directory={tmp_path}")
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert done.stdout


def test_a_question_that_lacks_what_a_packer_needs_is_told(tmp_path: Path) -> None:
    """All else of such a status is shown."""
    status = whole()
    del status["question"]["partitions_per_consumer_max"]
    in_file(tmp_path, status)
    where = ["--set", f"controller.directory={tmp_path}"]
    planned = invoked("plan", *where).exception
    assert isinstance(planned, PenstockError)
    assert "partitions_per_consumer_max" in planned.message
    assert invoked("status", *where).stdout


def show_status(found: dict[str, Any]) -> None:
    Console(quiet=True).print(rendered(found))


def show_live(found: dict[str, Any]) -> None:
    carried = CarriedSpeed().of(found)
    Console(quiet=True).print(live_view(found, width=80, height=40, carried_bytes_per_s=carried))


def show_changes(found: dict[str, Any]) -> None:
    ChangesInLines(lambda _: None).show(found)


def show_plan(found: dict[str, Any]) -> None:
    asked = found["question"]
    priced = priced_of_question(asked)
    dry_run(
        found["settings"]["algorithm"],
        problem_of_question(asked),
        weights_of_question(asked),
        priced,
    ).data()
    capacity_text(found)


SHOWN: tuple[Callable[[dict[str, Any]], None], ...] = (
    show_status,
    show_live,
    show_changes,
    show_plan,
)
WRONG: tuple[Any, ...] = (
    *(None, [], {}, "x", 10**20, -1, 0, 0.5, True, [1], ["x-1"], {"x": 1}, [{}]),
    ...,  # it is missing
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place, of rows of one kind only those in the first."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1])
    found = [path] if path else []
    for key, one in inner:
        found += places(one, (*path, key)) if isinstance(one, dict | list) else [(*path, key)]
    return found


def damaged_at(place: tuple[Any, ...], wrong: Any) -> dict[str, Any]:
    damaged = copy.deepcopy(GOOD)
    holder = damaged
    for key in place[:-1]:
        holder = holder[key]
    if wrong is ...:
        del holder[place[-1]]
    else:
        holder[place[-1]] = copy.deepcopy(wrong)
    return damaged


def shown(folder: Path, status: dict[str, Any]) -> str:
    """What fails with an error that is not for people; empty if nothing does."""
    try:
        found = read(folder, InKafka(SeenStatus(status, None, 3, 1.0)))
    except PenstockError:
        return ""
    for show in SHOWN:
        try:
            show(copy.deepcopy(found))
        except PenstockError:
            continue
        except Exception as error:  # noqa: BLE001 -- it is what is looked for
            return f"{show.__name__}: {error!r}"
    return ""


def test_damage_at_any_place_is_told_or_does_no_harm(tmp_path: Path) -> None:
    """In each of the forms in which a status is shown."""
    for show in SHOWN:
        show(read(tmp_path, InKafka(SeenStatus(copy.deepcopy(GOOD), None, 3, 1.0))))
    found = {
        (place, repr(wrong)): fault
        for place in places(GOOD)
        if not {"orders-1", "orders-2"} & set(place)
        for wrong in WRONG
        if (fault := shown(tmp_path, damaged_at(place, wrong)))
    }
    assert not found


def test_a_group_that_does_not_know_what_waits_says_so(tmp_path: Path) -> None:
    """A status may say so where it says nothing of where the backlog goes."""
    status = whole() | {"behind_records": None, "backlog": None}
    assert shown(tmp_path, status) == ""
    in_file(tmp_path, status)
    said = invoked("status", "--set", f"controller.directory={tmp_path}").stdout
    assert "behind an unknown number of records" in " ".join(said.split())


@pytest.mark.parametrize("wrong", ["behind_records", "end_offset", "start_offset", "behind_bytes"])
@pytest.mark.parametrize("value", [None, 0, ...])
def test_damage_where_the_ledger_is_asked_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, value: Any
) -> None:
    """A partition in which nothing waits was divided by."""
    unread = ("logs orders-0=0..10 orders-1=0..10", "speeds orders-0=0 orders-1=0", "tick +500")
    status = whole(*TWO_CONSUMERS[:3], *unread)
    assert status["partitions"]["orders-0"]["behind_is_at_most"]
    if value is ...:
        del status["partitions"]["orders-0"][wrong]
    else:
        status["partitions"]["orders-0"][wrong] = value
    monkeypatch.setattr(
        group_status, "ledger_offsets", lambda _, guessed, __: dict.fromkeys(guessed, 4)
    )
    found = read(tmp_path, InKafka(SeenStatus(status, None, 3, 1.0)))
    assert with_ledger(found, Settings().lake)["partitions"]["orders-1"]["behind_records"] == 6
