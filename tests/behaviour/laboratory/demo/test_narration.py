"""What the demo tells while it runs."""

from typing import Any

import pytest

from penstock.laboratory.demo.narration import (
    Narrator,
    Recovery,
    carried_text,
    introduction,
    load_text,
)
from penstock.laboratory.demo.observation import demo_figures
from penstock.laboratory.demo.recorded_run import RecordedRun
from penstock.laboratory.demo.run import DemoRun, result_rows
from penstock.laboratory.demo.story import SHORT, WHOLE


def status(
    *loads: tuple[float, str, int],
    epoch: int = 1,
    unread: int = 0,
    read: int = 4,
    phase: str = "Sentinel",
    history: tuple[tuple[str, str], ...] = (),
) -> dict[str, Any]:
    partitions = {f"a-{number}": {"status": "owned", "consumer": 1} for number in range(read)}
    partitions |= {
        f"b-{number}": {"status": "unread", "consumer": None} for number in range(unread)
    }
    return {
        "phase": phase,
        "controller_epoch": epoch,
        "written_bytes_per_s": 960_000.0,
        "partitions": partitions,
        "consumers": [
            {
                "consumer": number,
                "load_bytes_per_s": share * 400_000,
                "capacity_bytes_per_s": 400_000,
                "status": state,
                "partitions": ["x"] * held,
            }
            for number, (share, state, held) in enumerate(loads, start=1)
        ],
        "question": {"load_bytes_per_s": {"a-0": 960_000.0}, "capacity_bytes_per_s": 400_000},
        "history": [{"code": code, "explanation": text, "times": 1} for code, text in history],
    }


def test_who_carries_what_is_written() -> None:
    """One line: the load, each consumer by how full it is, what nobody reads."""
    found = status((1.2, "ready", 9), (0.0, "ready", 0), (0.0, "creating", 0), unread=2)
    assert carried_text(found) == (
        "960 kB/s written; consumers (at least 1 needed): 1 (120 % full), 2 (spare), 3 (starts); "
        "nobody reads 2 partitions"
    )
    assert carried_text(status()).endswith("no consumer yet")


def test_each_phase_of_the_load_is_told_when_it_begins() -> None:
    """The demo's own load: it begins, rises, shifts and falls."""
    narrator = Narrator(WHOLE)
    told = [text for at_s in range(125) for text in narrator.loaded(at_s)]
    assert [text.split("the load ")[1].split()[0] for text in told] == [
        "begins",
        "rises",
        "rises",
        "rises",
        "falls",
    ]
    assert told[1] == "  20 s  demo: the load rises to 960 kB/s, most of it to orders"
    assert "shifts" in load_text({"a": 10, "b": 20}, {"a": 20, "b": 10}, 4)


def test_the_controller_is_quoted() -> None:
    """Decisions of the past are not new, and what a plan implies is not told."""
    narrator = Narrator(SHORT)
    past = ("plan_made", "plan 1 (over_capacity): before, 0 to empty")
    assert narrator.seen(0, status(history=(past,))) == []
    now = ("plan_made", "plan 2 (over_capacity): too full; 4 moves, 0 to empty")
    told = narrator.seen(3, status(history=(past, now, ("plan_done", "plan 2 is done"))))
    assert told == ["   3 s  controller: plan 2: too full; 4 moves"]


def test_a_killed_consumer_is_told_until_its_partitions_are_read_again() -> None:
    """Not before the controller has noticed it: an old status shows that all is well."""
    narrator = Narrator(SHORT)
    narrator.seen(9, status())
    killed = narrator.disrupted(10, "consumer 1 killed with -9", "nobody reads its 2 partitions")
    assert killed == "  10 s  demo: consumer 1 killed with -9; nobody reads its 2 partitions"
    assert narrator.seen(11, status()) == []
    gone = ("consumer_ended", "the process of consumer 1 is gone")
    (noticed,) = narrator.seen(12, status(unread=2, history=(gone,)))
    assert noticed == "  12 s  controller: the process of consumer 1 is gone"
    (again,) = narrator.seen(17, status(history=(gone,)))
    assert again == "  17 s  every partition is read again, 7 s after: consumer 1 killed with -9"
    assert narrator.recoveries == [Recovery("consumer 1 killed with -9", 7)]
    assert narrator.seen(18, status(history=(gone,))) == []


@pytest.mark.parametrize("what", ["controller killed", "topic grown"])
def test_a_new_controller_and_new_partitions_are_noticed(what: str) -> None:
    """The new controller first asks everybody; then all is read."""
    narrator = Narrator(SHORT)
    narrator.seen(9, status())
    narrator.disrupted(10, what, "")
    if what == "controller killed":
        (back,) = narrator.seen(13, status(epoch=2, phase="Synchronize"))
        assert back == "  13 s  a new controller leads; the consumers went on meanwhile"
        (again,) = narrator.seen(15, status(epoch=2))
    else:
        assert narrator.seen(13, status(unread=2)) == []
        (again,) = narrator.seen(15, status(read=6))
    assert again == f"  15 s  every partition is read again, 5 s after: {what}"


def test_the_opening_fits_a_terminal() -> None:
    """It says what is written, how much one consumer carries, and what will be done."""
    lines = introduction(WHOLE)
    assert max(len(one) for one in lines) <= 100
    assert "24 partitions of 3 topics (orders, clicks, payments)" in " ".join(lines)
    assert "400 kB/s" in " ".join(lines)


def test_the_summary_says_how_long_each_disruption_was_felt() -> None:
    """Beside the counts of records; each hand-over is on the page only."""
    run = DemoRun(RecordedRun("penstock"), recoveries=[Recovery("consumer 1 killed with -9", 7.4)])
    rows = result_rows(run, demo_figures([], []))
    assert rows["all read again after: consumer 1 killed with -9"] == "7 s"
    assert rows["lost"] == rows["duplicated"] == "0"
