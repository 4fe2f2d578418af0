"""Records far larger than usual are carried, and disturb no other table."""

from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from kit.lake.lake import Carrier, new_topic_name, produce

pytestmark = [pytest.mark.broker, pytest.mark.spark]
MB = 1_000_000
LARGE = {"max.message.bytes": str(100 * MB)}


def _send(carrier: Carrier, topic: str, value: bytes) -> None:
    servers = carrier.settings.kafka.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "message.max.bytes": 100 * MB})
    producer.produce(topic, value, partition=0)
    assert producer.flush(240) == 0


@pytest.mark.parametrize(
    ("size_bytes", "codec"), [(40 * MB, "zstd"), (90 * MB, "zstd"), (90 * MB, "uncompressed")]
)
def test_a_huge_record_is_carried(
    make_carrier: Callable[..., Carrier], size_bytes: int, codec: str
) -> None:
    """It takes the pass-through way, together with a table beside it."""
    carrier = make_carrier()
    huge, beside = new_topic_name("huge"), new_topic_name("beside")
    # The broker compresses as Java does, without the length of what was compressed: a client that
    # decompresses it has to guess how much memory it needs.
    carrier.kafka.create_topic(huge, partitions=1, settings={**LARGE, "compression.type": codec})
    carrier.kafka.create_topic(beside, partitions=1)
    produce(carrier.settings.kafka, beside, {0: [b"x"] * 10})
    value = b"ab" * (size_bytes // 2)
    _send(carrier, huge, value)
    result = carrier.carry([*carrier.plan(huge), *carrier.plan(beside)])
    assert not result.failures
    assert result.records == 11
    rows = DeltaTable(f"{carrier.settings.lake.root}/{huge}").to_pyarrow_table()
    assert rows["value"].to_pylist() == [value]
    assert carrier.points.count("files-written") == 1, "not by the pass-through way"
