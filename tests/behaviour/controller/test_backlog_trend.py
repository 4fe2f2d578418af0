"""A group with long batches: its status is steady while it catches up, keeps up or falls behind."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kit.controller.story import Storyteller, after
from kit.controller.story_state import state_of
from penstock.controller.core.backlog_trend import BacklogDirection, backlog_trend
from penstock.controller.core.inputs import HeartbeatReturned
from penstock.controller.core.snapshot import snapshot
from penstock.controller.core.told_status import progress_text
from penstock.controller.core.waiting import group_waiting

ONE_CONSUMER = (
    "a controller starts with epoch 1",
    "deployed:",
    "deployed:",
    "logs orders-0=0..{end}",
    "speeds orders-0=100",
    "tick +500",
    "packed 1: orders-0",
    "consumer 1 reports",
    "consumer 1 started orders-0@1.1+0",
)
# Records of 10 bytes: 10 records are written in a second, the consumer's capacity.
WRITTEN_PER_S = 10
BYTES = 10


@dataclass
class LongBatches:
    """One consumer whose batches take `batch_s` and carry at most `records` each."""

    batch_s: int
    records: int
    end: int
    next_offset: int = 0
    _end_at_start: int = 0
    _since_s: int = 0
    teller: Storyteller = field(init=False)

    def __post_init__(self) -> None:
        self.teller = after(*(line.format(end=self.end) for line in ONE_CONSUMER))
        self._end_at_start = self.end

    def second(self) -> dict[str, Any]:
        """A second passes: records are written, the consumer and the monitor report."""
        for line in (*self._said_in_a_second(), "the heartbeat comes back", "tick +1000"):
            self.teller.tell(line)
        return self.status()

    def without_controller(self, seconds: int) -> list[dict[str, Any]]:
        """The controller stands still, and reads then what was said meanwhile; its clock went on.

        The heartbeat that was on its way is in the log before all that, its next one after it.
        """
        said = [self._said_in_a_second() for _ in range(seconds)]
        on_its_way = state_of(self.teller).heartbeats.heartbeats_sent
        self.teller.tell(f"tick +{1_000 * seconds}")
        found = [self.status()]
        epoch, now_ms = state_of(self.teller).controller_epoch, self.teller.now_ms
        self.teller.give(HeartbeatReturned(now_ms, epoch, on_its_way))
        for lines in said:
            found.append(self.status())
            for line in lines:
                self.teller.tell(line)
        return found

    def status(self) -> dict[str, Any]:
        return snapshot(state_of(self.teller), 0, is_degraded=False)

    def _said_in_a_second(self) -> list[str]:
        self.end += WRITTEN_PER_S
        self._since_s += 1
        carried = 0
        if self._since_s == self.batch_s:
            carried = min(self.records, self._end_at_start - self.next_offset)
            self.next_offset += carried
            self._since_s, self._end_at_start = 0, self.end
        behind = self._end_at_start - self.next_offset
        told = (
            f"behind_records={behind} behind_log_bytes={BYTES * behind} carried={BYTES * carried}"
        )
        works = f"works_on=batch works_ms={1_000 * self._since_s}"
        offsets = f"{self.next_offset}/{self._end_at_start}"
        return [
            f"consumer 1 reports orders-0@1.1+{offsets}, {told} {works}",
            f"logs orders-0=0..{self.end}",
            "speeds orders-0=100",
        ]

    def seconds(self, number: int) -> list[dict[str, Any]]:
        return [self.second() for _ in range(number)]


def trends(found: list[dict[str, Any]]) -> set[str]:
    return {one["backlog"]["trend"] for one in found}


def names(found: list[dict[str, Any]]) -> set[str]:
    return {one["condition"] for status in found for one in status["conditions"]}


def test_a_group_that_works_a_backlog_off_in_long_batches_catches_up_all_the_time() -> None:
    """In no second does it fall behind; the minutes that are left become fewer."""
    group = LongBatches(batch_s=40, records=2_000, end=200_000)
    first = group.seconds(90)
    assert names(first) == set()
    assert trends(first) <= {"unknown", "shrinking"}
    later = group.seconds(400)
    assert names(later) == set()
    assert trends(later) == {"shrinking"}
    left = [one["backlog"]["left_s"] for one in later]
    # 2,000 records in 40 s, and 400 are written meanwhile.
    assert abs(left[-1] - later[-1]["behind_records"] / 40) < 120
    assert left[-1] < left[0]
    assert progress_text(later[-1]).startswith("catching up: 500 B/s carried, about 1 h")


def test_the_time_left_does_not_jump_from_batch_to_batch() -> None:
    """Batches of different size, little more than what is written: it said 20 min, then 2 h."""
    group = LongBatches(batch_s=20, records=260, end=200_000)
    group.seconds(300)
    left = []
    for number in range(30):
        group.records = (300, 220)[number % 2]
        left += [one["backlog"]["left_s"] for one in group.seconds(20)]
    assert max(left) < 1.5 * min(left)


def test_the_time_left_is_known_soon_after_a_backlog_began_to_shrink() -> None:
    """The longer look has the time before in it, when the backlog grew."""
    group = LongBatches(batch_s=20, records=100, end=50_000)
    group.seconds(400)
    group.records = 600
    found = group.seconds(150)
    assert found[-1]["backlog"]["trend"] == "shrinking"
    # 600 records in 20 s, and 200 are written meanwhile.
    assert abs(found[-1]["backlog"]["left_s"] - found[-1]["behind_records"] / 20) < 600


def test_the_time_left_is_not_spoiled_by_a_rise_a_minute_ago() -> None:
    """A backlog that rose and fell within the long look lost little: 50 min were told for one."""
    group = LongBatches(batch_s=2, records=20, end=50_000)
    group.seconds(200)
    group.records = 0
    group.seconds(50)
    group.records = 160
    for status in group.seconds(150)[20:]:
        left_s = status["backlog"]["left_s"]
        # 160 records in 2 s, and 20 are written meanwhile.
        assert left_s is None or left_s < 3 * status["behind_records"] / 70


def test_without_the_bytes_of_before_the_time_left_is_unknown() -> None:
    """The monitor had not weighed the logs yet."""
    group = LongBatches(batch_s=20, records=600, end=50_000)
    group.seconds(150)
    state = state_of(group.teller)
    samples = tuple(replace(one, log_bytes=None) for one in state.backlog_samples)
    waiting = group_waiting(state).total()
    found = backlog_trend(replace(state, backlog_samples=samples), waiting)
    assert (found.direction, found.left_s) == (BacklogDirection.SHRINKING, None)
    assert waiting.log_bytes


def test_a_group_that_carries_too_little_falls_behind_all_the_time() -> None:
    """Once it is known it is said in every second, not only between commits."""
    group = LongBatches(batch_s=40, records=100, end=50_000)
    group.seconds(130)
    found = group.seconds(300)
    assert trends(found) == {"growing"}
    assert all(
        any(one["condition"] == "falling behind" for one in status["conditions"])
        for status in found
    )
    assert found[-1]["carried_bytes_per_s"] == 25.0


def test_what_long_batches_leave_is_no_backlog() -> None:
    """A batch carries all there was at its beginning: what is written meanwhile always waits."""
    group = LongBatches(batch_s=20, records=10_000, end=0)
    found = group.seconds(300)
    assert names(found) == set()
    assert trends(found[60:]) == {"small"}
    assert progress_text({**found[-1], "objective_freshness_s": 60.0}) == "all is well"
    # They are too long for the objective all the same.
    late = progress_text(found[-1])
    assert late.startswith("not fresh: ")
    assert late.endswith("; the objective is 10 s")


def test_what_is_written_while_a_batch_runs_is_behind() -> None:
    """Between two commits it grows with the log, of the group, its consumer and its partition."""
    group = LongBatches(batch_s=40, records=2_000, end=20_000)
    found = group.seconds(30)
    behind = [one["behind_records"] for one in found]
    assert behind == [20_000 + WRITTEN_PER_S * second for second in range(1, 31)]
    assert [one["consumers"][0]["behind_records"] for one in found] == behind
    assert [one["partitions"]["orders-0"]["behind_records"] for one in found] == behind
    assert found[-1]["behind_bytes"] == BYTES * behind[-1]


def test_a_first_batch_is_waited_for() -> None:
    """Before it nothing was carried for minutes: that says nothing about the group."""
    group = LongBatches(batch_s=10_000, records=1, end=20_000)
    for _ in range(120):
        for line in ("consumer 1 reports orders-0@1.1", "the heartbeat comes back", "tick +1000"):
            group.teller.tell(line)
    found = group.seconds(120)
    assert "falling behind" not in names(found)
    waits = "21,200 records wait"
    assert progress_text(found[-1]) == (
        f"not fresh: {waits}, as much as is written in 35 min 20 s; the objective is 10 s; "
        "whether they get fewer is not known yet"
    )
    patient = {**found[-1], "objective_freshness_s": 3_600.0}
    assert progress_text(patient).startswith(f"too early to tell: {waits}")


def test_a_group_at_the_limit_does_not_go_back_and_forth() -> None:
    """It fell behind, and now carries nearly what is written: only enough ends the condition."""
    group = LongBatches(batch_s=10, records=50, end=50_000)
    group.seconds(100)
    group.records = 95
    assert trends(group.seconds(120)[60:]) == {"growing"}
    group.records = 130
    assert trends(group.seconds(120)[60:]) == {"shrinking"}


def test_a_batch_that_waits_for_the_lake_is_no_work() -> None:
    """It may never end, so the time that is judged does not grow with it."""
    group = LongBatches(batch_s=10, records=200, end=50_000)
    group.seconds(60)
    told = f"orders-0@1.1+{group.next_offset}/{group.end}, works_on=batch works_ms=400000"
    group.teller.tell(f"consumer 1 reports {told} waits_for=lake waits_ms=400000")
    assert snapshot(state_of(group.teller), 0, is_degraded=False)["batch_s"] == 9.0


@pytest.mark.parametrize("pause_s", [20, 60])
@pytest.mark.parametrize(("batch_s", "records"), [(20, 260), (40, 500), (60, 840)])
def test_a_pause_of_the_controller_says_nothing_about_the_group(
    batch_s: int, records: int, pause_s: int
) -> None:
    """What was carried meanwhile was not read yet: `falling behind` was told for a minute."""
    for before_s in range(240, 240 + batch_s, 13):
        group = LongBatches(batch_s, records, end=200_000)
        group.seconds(before_s)
        found = [*group.without_controller(pause_s), *group.seconds(120)]
        assert "falling behind" not in names(found), before_s
        assert trends(found) == {"shrinking"}, before_s
        left = [one["backlog"]["left_s"] for one in found]
        assert max(left) < 1.5 * min(left), before_s


def test_nothing_is_judged_across_a_gap() -> None:
    """Of the two batches in it, the time is unknown: they seemed to be slower than they were."""
    group = LongBatches(batch_s=40, records=500, end=200_000)
    group.seconds(240)
    assert trends([*group.without_controller(60), *group.seconds(40)]) == {"shrinking"}


def test_a_group_that_falls_behind_does_so_after_a_pause_of_the_controller() -> None:
    """What was known before it is known after it."""
    group = LongBatches(batch_s=40, records=100, end=50_000)
    group.seconds(300)
    found = [*group.without_controller(60), *group.seconds(120)]
    assert trends(found) == {"growing"}
