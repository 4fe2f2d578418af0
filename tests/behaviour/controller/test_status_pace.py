"""How often the controller writes its status."""

import json
from dataclasses import replace

import pytest

from kit.controller.story import TWO_CONSUMERS, after
from kit.controller.story_state import state_of
from penstock.cli.group_status import STALE_AFTER_S
from penstock.controller.core.snapshot import snapshot, snapshot_without_question
from penstock.controller.core.state import State
from penstock.controller.process import status_file
from penstock.controller.process.status_file import (
    QUESTION_EVERY_MS,
    STATUS_EVERY_S_MAX,
    KeptQuestion,
    status_pause_s,
    status_text,
    with_part,
)


@pytest.mark.parametrize(
    ("took_s", "pause_s"), [(0.0, 1.0), (0.001, 1.0), (0.04, 2.0), (0.08, 4.0), (3.0, 4.0)]
)
def test_a_dear_status_is_written_less_often(took_s: float, pause_s: float) -> None:
    """It takes a fiftieth of a core at most, once a second at best and every four at worst."""
    assert status_pause_s(took_s) == pytest.approx(pause_s)


def test_the_rarest_status_is_not_taken_for_silence() -> None:
    """`penstock status` says that the controller is silent only after a status was left out."""
    assert STATUS_EVERY_S_MAX < STALE_AFTER_S


def test_a_status_in_two_parts_is_the_snapshot() -> None:
    """The question is put in as text; nothing is lost or changed by that."""
    state = state_of(after(*TWO_CONSUMERS))
    rest = snapshot_without_question(state, 5, is_degraded=False)
    text = with_part(status_text(rest), "question", KeptQuestion().text(state))
    assert json.loads(text) == snapshot(state, 5, is_degraded=False)


def test_the_question_of_a_large_group_is_kept_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until it is old, or there is another plan; that of a small group is always new."""
    state = state_of(after(*TWO_CONSUMERS))
    assert state.speeds is not None
    slower = replace(state.speeds, bytes_per_s=dict.fromkeys(state.write_speeds, 1.0))
    memory = replace(state.speed_memory, established=slower.bytes_per_s)
    later = replace(
        state, speeds=slower, speed_memory=memory, now_ms=state.now_ms + QUESTION_EVERY_MS - 1
    )
    small = KeptQuestion()
    assert small.text(state) != small.text(later)
    monkeypatch.setattr(status_file, "QUESTION_PARTITIONS", len(state.write_speeds) - 1)
    large = KeptQuestion()
    first = large.text(state)
    assert large.text(later) == first
    planned = large.text(replace(later, plan_number=later.plan_number + 1))
    assert planned != first
    assert large.text(replace(state, plan_number=later.plan_number + 1)) == planned
    old = replace(later, plan_number=later.plan_number + 1, now_ms=later.now_ms + QUESTION_EVERY_MS)
    assert json.loads(large.text(old))["load_bytes_per_s"] == slower_loads(old)


def slower_loads(state: State) -> dict[str, float]:
    loads: dict[str, float] = snapshot(state, 0, is_degraded=False)["question"]["load_bytes_per_s"]
    return loads
