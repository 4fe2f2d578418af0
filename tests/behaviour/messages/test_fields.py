"""Properties and checks of the messages themselves."""

import pytest
from pydantic import ValidationError

from kit.controller.messages import EXAMPLES
from penstock.messages import (
    ChangeSettings,
    FromConsumer,
    OfferedBatch,
    StartConsumingCommand,
    StateQuery,
    UpdateDeployments,
)
from penstock.messages.commits import BetweenConsumers
from penstock.messages.fields import EpochRow, ToConsumer
from penstock.model import ConsumerId, Epoch, TopicPartition
from penstock.model.commit_partitions import (
    COMMIT_PARTITIONS,
    answers_partition,
    offers_partition,
)


def test_messages_find_their_mailbox() -> None:
    """Commands and queries go to the consumer's partition, batches to that of their table."""
    for message in EXAMPLES:
        if isinstance(message, (ToConsumer, StateQuery)):
            assert message.mailbox == message.consumer_id
        elif isinstance(message, OfferedBatch):
            assert message.mailbox == offers_partition(message.table)
        elif isinstance(message, BetweenConsumers):
            assert message.mailbox == answers_partition(message.table) != 0
        else:
            assert message.mailbox == 0
        if isinstance(message, FromConsumer):
            assert message.sender == ConsumerId(message.consumer_id)


def test_tables_are_spread_over_the_pairs() -> None:
    """The same for every process and release: a table is found where it was."""
    assert [offers_partition(f"orders-{number}") for number in range(4)] == [0, 12, 8, 4]
    places = {offers_partition(f"t{number}") for number in range(200)}
    assert places == set(range(0, COMMIT_PARTITIONS, 2))


def test_rows_return_types_of_the_model() -> None:
    """A row returns its partition and epoch as types of the model."""
    row = EpochRow(topic="orders", partition=3, epoch="7.12")
    assert row.topic_partition == TopicPartition("orders", 3)
    assert row.partition_epoch == Epoch(7, 12)


def test_messages_do_not_change() -> None:
    """A message cannot be changed."""
    query = StateQuery(consumer_id=1, controller_epoch=1, plan_number=1, query_number=1)
    with pytest.raises(ValidationError, match="frozen"):
        query.consumer_id = 2  # type: ignore[misc]  # the point of the test


def test_a_command_names_at_least_one_partition() -> None:
    """A command without partitions is refused."""
    with pytest.raises(ValidationError, match="at least 1"):
        StartConsumingCommand(
            consumer_id=1, incarnation=1, controller_epoch=1, plan_number=1, partitions=()
        )


@pytest.mark.parametrize(
    "change",
    [
        {"spark_settings": {"spark.jars": "1"}},
        {"spark_settings": {"spark.executor.memory": "$(reboot)"}},
        {"environment": {"LD_PRELOAD": "x"}},
        {"environment": {"PYTHONSTARTUP_APP_X": "x"}},
        {"environment": {"APP_X\n": "x"}},
        {"environment": {"APP_\u017f": "x"}},
        {"environment": {"APP_X": "line\nbreak"}},
        {"image": "-v /:/host"},
        {"transformations": {"orders": "os.system"}},
        {"transformations": {"orders": "a.b:c.d"}},
        {"transformations": {"orders": "a.b:c\n"}},
        {"transformations": {"orders": "..a:c"}},
        {"transformations": {"orders": "a/b:c"}},
        {"image": "penstock:2\n"},
        {"image": "\uff50enstock:2"},
        {"transformations": {"../x": "a.b:c"}},
    ],
)
def test_an_update_cannot_ask_for_what_is_not_listed(change: dict[str, object]) -> None:
    """An update with a connection option, loader variable, path or shell text is refused."""
    with pytest.raises(ValidationError):
        UpdateDeployments.model_validate({"request_id": "r", **change})


def test_bounds_that_cross_are_refused() -> None:
    """A minimum above the maximum is refused."""
    with pytest.raises(ValidationError, match="consumers_min 5 is above consumers_max 4"):
        ChangeSettings(request_id="r", consumers_min=5, consumers_max=4)
    assert ChangeSettings(request_id="r", consumers_min=4, consumers_max=4).consumers_min == 4
