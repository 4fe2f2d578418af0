"""What all consumers share stands still for a while: nobody is told to end, and nothing is lost.

Stopped processes (SIGSTOP) answer nothing and keep their connections, like a machine that hangs.
"""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kit.group.live_group import LiveGroup, working
from penstock.laboratory.broker.embedded import Node
from penstock.processes import ProcessIdentity

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.live,
    pytest.mark.timeout(400),
]

BROKER_S = 30.0
CONTROLLER_S = 20.0
# As long as a judgement takes that would come late.
AFTER_S = 15.0


def harmed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Consumers that were told to end since then, and those that were up and were started again.

    One that only just starts cannot go on without a broker: it ends and is started again.
    """
    news = [
        one
        for one in after["history"]
        if after["at_unix_ms"] - one["age_ms"] > before["at_unix_ms"]
    ]
    ready = [one["consumer"] for one in before["consumers"] if one["status"] == "ready"]
    return [
        one["explanation"]
        for one in news
        if one["code"] == "consumer_fenced"
        or (
            one["code"] in {"consumer_incident", "consumer_restarted"}
            and any(one["explanation"].startswith(f"consumer {known}") for known in ready)
        )
    ]


@contextmanager
def standing_still(live: LiveGroup, process: ProcessIdentity, seconds: float) -> Iterator[None]:
    live.send(process, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        live.send(process, signal.SIGCONT)
    yield


def two_at_work(live: LiveGroup, topic: str) -> dict[str, Any]:
    """Load for two consumers has been carried by two of them."""
    live.administration.create_topic(topic, partitions=6)
    live.converged({topic: 6})
    with live.loading(f"{topic}=80kB/s", seconds=10):
        return live.until(lambda status: working(status) >= 2, "two consumers at work")


def harmless(live: LiveGroup, topic: str, process: ProcessIdentity, seconds: float) -> None:
    before = two_at_work(live, topic)
    with standing_still(live, process, seconds), live.loading(f"{topic}=80kB/s", seconds=AFTER_S):
        pass
    after = live.until(
        lambda status: status["at_unix_ms"] > before["at_unix_ms"], "a controller that goes on"
    )
    assert harmed(before, after) == []
    live.exact(topic, 6)


def test_a_broker_that_stands_still_ends_no_consumer(live: LiveGroup) -> None:
    """For half a minute no message passes; then everything goes on with the same consumers."""
    assert live.group.broker is not None
    (node,) = live.group.broker.nodes.values()
    assert isinstance(node, Node)
    harmless(live, "standing", node.process, BROKER_S)


def test_a_controller_that_stands_still_ends_no_consumer(live: LiveGroup) -> None:
    """It finds twenty seconds of reports, reads them first, and judges nobody by its own clock."""
    harmless(live, "waiting", live.group.process_of("controller"), CONTROLLER_S)
