"""Who hears how many partitions there are."""

from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from penstock.kafka_io.broker_questions import Answers, BrokerQuestions
from penstock.model.broker_logs import LogPlace
from penstock.monitor.process import SpeedMeasuring
from penstock.settings import Settings


class OneTopic:
    """Brokers that answer with a layout, and with nothing else."""

    def ask(self, *_: object, **__: object) -> Answers:
        return Answers(layout={("orders", 0): LogPlace("id", 1, is_internal=False)})


@pytest.mark.parametrize(("given", "told"), [({}, 1), ({"tells_partitions": False}, 0)])
def test_the_monitor_logs_it_and_commands_do_not(given: dict[str, Any], told: int) -> None:
    """A log line among the lines of `penstock speeds` says nothing to a person."""
    measuring = SpeedMeasuring(Settings(), cast("BrokerQuestions", OneTopic()), **given)
    with capture_logs() as logs:
        measuring.run_round()
    assert [one["event"] for one in logs].count("partitions_changed") == told
