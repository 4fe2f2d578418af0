"""A heartbeat counts when it came back through every log in which consumers' messages can be."""

import pytest

from penstock.controller.process.returned_heartbeats import ReturnedHeartbeats
from penstock.messages import ControllerHeartbeat


def taken(returned: ReturnedHeartbeats, number: int, *, own: bool, epoch: int = 7) -> bool:
    heartbeat = ControllerHeartbeat(controller_epoch=epoch, heartbeat_number=number)
    return returned.is_complete(heartbeat, is_in_controllers_log=own)


@pytest.mark.parametrize("first_is_own", [True, False])
def test_ours_counts_after_both_logs(first_is_own: bool) -> None:
    """Whichever is read first, and each heartbeat once."""
    returned = ReturnedHeartbeats(7)
    assert not taken(returned, 1, own=first_is_own)
    assert not taken(returned, 1, own=first_is_own), "twice in one log is not both"
    assert taken(returned, 1, own=not first_is_own)
    assert not taken(returned, 1, own=not first_is_own), "counted already"


def test_one_that_was_lost_in_one_log_holds_up_no_other() -> None:
    """The next that is in both counts."""
    returned = ReturnedHeartbeats(7)
    assert not taken(returned, 1, own=True)
    assert not taken(returned, 2, own=True)
    assert taken(returned, 2, own=False)


def test_who_may_write_to_the_consumers_topic_alone_forges_none() -> None:
    """Neither ours nor another controller's."""
    returned = ReturnedHeartbeats(7)
    assert not any(taken(returned, number, own=False) for number in range(1, 200))
    assert not taken(returned, 1, own=False, epoch=9)


def test_another_controllers_is_heard_at_once() -> None:
    """One of a former release writes to its own partition only."""
    assert taken(ReturnedHeartbeats(7), 1, own=True, epoch=9)
