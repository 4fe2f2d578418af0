"""A group keeps to what its load needs: backlogs, numbers, hot partitions.

The cases and their figures come from groups that harmed themselves.
"""

from typing import Any

import pytest

from kit.controller.imagined_group import MB, ImaginedGroup, constant, partitions
from kit.controller.story import TWO_CONSUMERS, after
from penstock.controller.core.load import group_load
from penstock.controller.core.membership import want_one_more
from penstock.controller.core.state import ConsumerStatus
from penstock.controller.core.step_draft import StepDraft
from penstock.model import ConsumerId, TopicPartition

# Backlogs


@pytest.mark.slow
def test_a_backlog_starts_no_consumer_while_nothing_is_written() -> None:
    """One consumer and the spare carry it: it was 38 of them and the spare."""
    group = ImaginedGroup(partitions(40, 0.0), waiting_bytes=2_400 * MB).run(300)
    assert (group.working, group.most_deployed) == (1, 2)


@pytest.mark.slow
def test_a_backlog_adds_a_bounded_share() -> None:
    """Ten minutes behind at 8 MB/s: a share of 0.5 allows eight consumers of 1.7 MB/s."""
    group = ImaginedGroup(partitions(80, 0.1 * MB), waiting_bytes=600 * 8 * MB)
    group.run(600)
    assert group.most_deployed <= 8 + 1
    small = ImaginedGroup(
        partitions(80, 0.1 * MB), waiting_bytes=600 * 8 * MB, controller__catch_up_share=0
    )
    assert small.run(600).most_deployed == 5 + 1


def test_a_backlog_is_counted_once_while_a_plan_runs() -> None:
    """A plan moves seven of eight partitions off a consumer that is behind: 3 MB/s stay 3 MB/s."""
    names = [f"t-{n}" for n in range(8)]
    owned = " ".join(f"{name}@1.{n + 1}" for n, name in enumerate(names))
    teller = after(
        "settings capacity=2MB/s catch_up=120s consumers_max=9",
        "a controller starts with epoch 1",
        "deployed:",
        "deployed:",
        "speeds " + " ".join(f"{name}=250000" for name in names),
        "tick +500",
        "packed 1: " + " ".join(names),
        "consumer 1 reports",
        f"consumer 1 started {owned}",
        "3000 ms pass",
        f"consumer 1 reports {owned}, behind_log_bytes=1200000000",
        "tick +500",
        f"packed 1: {names[0]}; 2: {' '.join(names[1:])}",
    )
    assert teller.state is not None
    load = group_load(StepDraft(teller.state, teller.now_ms))
    assert sum(load.load_bytes_per_s.values()) == 3e6
    assert sum(load.load_by_consumer.values()) == 3e6
    assert set(load.load_by_consumer) == {1, 2}


def test_the_backlog_of_a_moved_partition_stays_behind() -> None:
    """Its old consumer's report tells of it no more once another one holds it."""
    teller = after(
        "settings catch_up=10s catch_up_share=1",
        *TWO_CONSUMERS,
        "consumer 2 reports orders-2@1.3, behind_log_bytes=400",
    )
    assert teller.state is not None
    at = TopicPartition("orders", 2)
    assert group_load(StepDraft(teller.state, teller.now_ms)).load_bytes_per_s[at] == 80
    teller.tell("consumer 2 stopped orders-2@1.3, ledger_refused")
    assert group_load(StepDraft(teller.state, teller.now_ms)).load_bytes_per_s[at] == 40


def test_a_backlog_that_is_gone_no_longer_counts() -> None:
    """A report of zero clears the report before."""
    teller = after(
        "settings catch_up=10s catch_up_share=1",
        *TWO_CONSUMERS,
        "consumer 2 reports orders-2@1.3, behind_log_bytes=400",
        "consumer 2 reports orders-2@1.3, behind_log_bytes=0",
    )
    assert teller.state is not None
    load = group_load(StepDraft(teller.state, teller.now_ms))
    assert load.load_bytes_per_s[TopicPartition("orders", 2)] == 40
    assert not load.is_behind


@pytest.mark.slow
def test_the_maximum_binds_everywhere() -> None:
    """Growth, an overtaken plan, spares and wishes: 102 consumers of 100 cannot be."""
    logs: Any = {f"t-{n}": (lambda s, n=n: 0.5 * MB * (1 + (s // 7 + n) % 3)) for n in range(60)}
    group = ImaginedGroup(
        logs,
        start_ms=15_000,
        waiting_bytes=3_000 * MB,
        controller__consumers_max=10,
        controller__spare_consumers=3,
        controller__catch_up_share=5,
    )
    for _ in range(20):
        group.run(15)
        assert len(group.state.consumers) <= 10
    assert group.most_deployed == 10
    assert want_one_more(StepDraft(group.state, group.now_ms)) is None


@pytest.mark.slow
def test_consumers_that_are_only_wanted_go_with_the_reason_of_their_plan() -> None:
    """Fourteen were wanted and five may be created a minute; then three will do again."""
    fast: list[float] = [0.1 * MB]
    logs = {f"t-{n}": (lambda _: fast[0]) for n in range(40)}
    group = ImaginedGroup(
        logs,
        controller__creations_per_minute_max=5,
        controller__spare_consumers=0,
        controller__catch_up="0s",
    ).run(120)
    fast[0] = 0.5 * MB
    group.run(10)
    wanted = [r for r in group.state.consumers.values() if r.status is ConsumerStatus.WANTED]
    assert len(wanted) >= 5
    fast[0] = 0.1 * MB
    group.run(240)
    assert group.counts["created"] <= 3 + 5
    assert not [r for r in group.state.consumers.values() if r.status is ConsumerStatus.WANTED]


# Consumer 1 is over capacity and its plan wants consumers 3, 4 and 5; two may be created now.
GROWING = (
    "settings overtake_after=0s plan_interval=0s creations_per_minute_max=4",
    "a controller starts with epoch 1",
    "deployed:",
    "deployed:",
    "speeds p-0=20 p-1=20 p-2=20 p-3=20 q-0=40 q-1=40",
    "tick +500",
    "packed 1: p-0 p-1 p-2 p-3; 2: q-0 q-1",
    "consumer 1 reports",
    "consumer 2 reports",
    "consumer 1 started p-0@1.1 p-1@1.2 p-2@1.3 p-3@1.4",
    "consumer 2 started q-0@1.5 q-1@1.6",
    "3000 ms pass",
    "speeds p-0=60 p-1=60 p-2=60 p-3=60 q-0=40 q-1=40",
    "tick +500",
    "packed 1: p-0; 2: q-0 q-1; 3: p-1; 4: p-2; 5: p-3",
    "speeds p-0=20 p-1=20 p-2=20 p-3=20 q-0=80 q-1=80",
)


def test_a_plan_has_its_time_before_another_overload_overtakes_it() -> None:
    """The consumers that it waits for need a while to start."""
    patient = "settings overtake_after=60s plan_interval=0s creations_per_minute_max=4"
    for first, is_overtaken in ((GROWING[0], True), (patient, False)):
        teller = after(first, *GROWING[1:])
        lines = [line for _ in range(8) for line in teller.tell("tick +500")]
        assert any("plan_overtaken" in line for line in lines) == is_overtaken


def test_consumers_of_an_overtaken_plan_are_reused() -> None:
    """Another consumer is over capacity: it gets one that is coming, and none is created."""
    teller = after(*GROWING)
    assert teller.state is not None
    assert [int(c) for c in sorted(teller.state.consumers)] == [1, 2, 3, 4, 5]
    assert any("plan_overtaken" in line for line in teller.tell("tick +500"))
    lines = teller.tell("packed 1: p-0 p-1 p-2 p-3; 2: q-0; 9: q-1")
    assert not any("create" in line.split()[1:2] for line in lines)
    assert (
        "  consumer_removed: consumer 5 is removed: the plan that wanted it is overtaken" in lines
    )
    assert teller.state.plan is not None
    assert teller.state.plan.target[TopicPartition("q", 1)] == 3
    assert [int(c) for c in sorted(teller.state.consumers)] == [1, 2, 3, 4]


def test_a_plan_goes_on_when_nothing_better_is_found() -> None:
    """The packer fails when it is asked to overtake a plan: the plan that there is goes on."""
    teller = after(*GROWING, "tick +500")
    assert teller.state is not None
    assert "  = Group Management" in teller.tell("the packer fails: it ran out of memory")
    assert "  > stop at 1: p-1@1.2 (plan 3)" in teller.tell("consumer 3 reports")


def test_a_plan_with_a_partition_that_nobody_reads_is_not_dropped() -> None:
    """The overload is over, but the plan still has to find a reader."""
    teller = after(*GROWING, "the process of consumer 1 is gone")
    teller.tell("speeds p-0=20 p-1=20 p-2=20 p-3=20 q-0=40 q-1=40")
    assert not any("plan_dropped" in line for line in teller.tell("tick +500"))


# Numbers


@pytest.mark.slow
def test_a_number_that_cannot_be_created_does_not_block_the_group() -> None:
    """The volume of consumer 1 never attaches: others take its place, and it is left alone."""
    group = ImaginedGroup(partitions(30, 0.1 * MB), controller__creation_timeout="20s")
    group.cannot_start = {ConsumerId(1)}
    group.run(120)
    assert group.working == 2
    assert ConsumerId(1) not in group.workers
    assert group.counts["created"] == 2 + 1 + 1
    group.cannot_start = set()
    assert ConsumerId(1) not in group.run(400).workers


def test_a_failed_number_is_used_again_after_its_wait() -> None:
    """Or at once when every number up to the maximum has failed: then it is not the number."""
    lines = (
        "settings number_retry=60s creation_retry=1s consumers_max=2",
        "a controller starts with epoch 1",
        "deployed:",
        "deployed:",
        "speeds a-0=90",
        "tick +500",
        "packed 1: a-0",
        "consumer 1 cannot be created: the volume is in use",
        "consumer 1 is deleted",
        "2000 ms pass",
        "speeds a-0=90",
        "tick +500",
    )
    assert "  > create consumer 2" in after(*lines).tell("packed 1: a-0")
    again = after(*lines, "packed 1: a-0", "consumer 2 cannot be created: the volume is in use")
    for line in ("consumer 2 is deleted", "2000 ms pass", "speeds a-0=90", "tick +500"):
        again.tell(line)
    assert "  > create consumer 1" in again.tell("packed 1: a-0")
    later = after(*lines[:-3], "60000 ms pass", "speeds a-0=90", "tick +500")
    assert "  > create consumer 1" in later.tell("packed 1: a-0")


# Partitions that no plan can help


@pytest.mark.slow
def test_a_hot_partition_does_not_decide_for_the_others() -> None:
    """Its backlog grows without end: 3 consumers do, and the group still becomes smaller."""
    quiet: list[float] = [0.4 * MB]
    logs: dict[str, Any] = {f"t-{n}": (lambda _: quiet[0]) for n in range(21)}
    logs["hot-0"] = constant(6 * MB)
    group = ImaginedGroup(logs, packing__scale_down_period="60s").run(120)
    assert group.working == 6 + 1
    quiet[0] = 0.1 * MB
    group.run(180)
    assert group.working <= 2 + 1


def test_a_stopped_partition_takes_no_capacity() -> None:
    """Nobody reads it: the consumer it belongs to is not over capacity because of it."""
    teller = after(*TWO_CONSUMERS, "3000 ms pass", "speeds orders-0=40 orders-1=90 orders-2=40")
    assert teller.state is not None
    draft = StepDraft(teller.state, teller.now_ms)
    assert group_load(draft).load_by_consumer[ConsumerId(1)] == 130
    teller.tell("consumer 1 stopped orders-1@1.2, log_truncated")
    draft = StepDraft(teller.state, teller.now_ms)
    load = group_load(draft)
    assert load.load_by_consumer[ConsumerId(1)] == 40
    assert load.load_bytes_per_s[TopicPartition("orders", 1)] == 0


@pytest.mark.slow
def test_with_a_binding_maximum_all_consumers_are_used_beside_a_hot_partition() -> None:
    """20 of 20, and none of the others has more than 1.1 MB/s: it was 11 with 2 MB/s each."""
    logs = partitions(200, 0.1 * MB) | {"hot-0": constant(20 * MB)}
    group = ImaginedGroup(
        logs,
        carries_bytes_per_s=1 * MB,
        packing__capacity="1MB/s",
        controller__consumers_max=20,
        controller__spare_consumers=0,
    ).run(120)
    loads = sorted(group.loads().values())
    assert len(loads) == 20
    assert loads[-1] == 20 * MB
    assert loads[-2] <= 1.11 * MB
