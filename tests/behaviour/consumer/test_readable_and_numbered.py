"""What a new batch may read, the numbers of a message in parts, and the settings of the core."""

from kit.consumer.consumer_script import A, B, Script
from penstock.consumer.core.ownership import Owned, Ownership
from penstock.consumer.core.settings import core_settings
from penstock.consumer.core.shutdown_record import begin_incarnation
from penstock.messages import StopReason
from penstock.model import ConsumerId, Epoch, TopicPartition
from penstock.settings import Settings, changed_settings


def readable(**changes: object) -> bool:
    """Whether a partition at offset 5 may be read, changed like this."""
    owned = {A: Owned(Epoch(1, 1), **{"next_offset": 5, **changes})}  # type: ignore[arg-type]  # any field
    return Ownership(ConsumerId(1), 1, owned=owned).readable == {A: 5}


def test_what_is_settled_is_read() -> None:
    """A partition whose offset is known, that stays and is in no batch."""
    assert readable()
    assert not readable(next_offset=None)


def test_what_ends_is_not_read_on() -> None:
    """Another consumer waits for it."""
    assert not readable(ending=StopReason.COMMANDED)


def test_what_is_in_a_batch_is_not_read_again() -> None:
    """The batch that runs carries these very offsets."""
    assert not readable(is_in_batch=True)


def test_each_part_of_a_report_has_a_number_and_the_next_message_another() -> None:
    """The controller drops a message with the number of another one: it would be lost."""
    script = Script()
    many = [(TopicPartition("t", n), f"1.{n + 1}") for n in range(1_500)]
    script.start(*many[:1_000])
    script.start(*many[1_000:])
    sent = script.ledgers({partition: Epoch.parse(epoch) for partition, epoch in many}, 0)
    for _ in range(2):
        sent += script.wait(2_000)
    numbers = [message.sequence for message in sent]
    assert len(numbers) >= 5
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert script.own.sequence == numbers[-1]


def test_durations_of_the_settings_are_milliseconds_in_the_core() -> None:
    """None is none, and less than one millisecond is one: a period of none would never pass."""
    chosen = changed_settings(
        Settings(),
        {
            "consumer.report_period": "2s",
            "consumer.batch_time": "0.0001s",
            "lake.compact_period": "0s",
            "consumer.grace": "7s",
        },
    )
    core = core_settings(chosen, deployment_version=3)
    assert (core.report_period_ms, core.batch_time_ms, core.upkeep_period_ms) == (2_000, 1, 0)
    assert (core.grace_ms, core.deployment_version) == (7_000, 3)


def test_a_look_asks_only_for_what_may_be_read() -> None:
    """Of two partitions one is in the batch; when it is over, both are looked at."""
    script = Script().owning(A, B).carrying(A)
    assert script.own.readable == {B: 10}
    script.batch_ends({A: 15})
    assert script.own.readable == {A: 15, B: 10}


def test_a_clock_that_was_put_back_gives_no_old_incarnation() -> None:
    """The number is the time, but always above the one before."""
    stored = {"incarnation": 100, "state": "controlled"}
    numbers = [
        begin_incarnation(stored, is_broken=False, now_ms=ms).incarnation for ms in (50, 500)
    ]
    assert numbers == [101, 500]
