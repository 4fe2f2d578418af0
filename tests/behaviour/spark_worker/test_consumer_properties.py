"""The user's client properties hold on both ways to the records."""

from penstock.kafka_io.client_properties import java_properties, librdkafka_properties
from penstock.pipeline.read_range import read_options
from penstock.settings.sections import KafkaSettings
from penstock.spark_worker.assigned_reader import consumer_properties

CHOSEN = {
    "client.id": "billing",
    "fetch.max.bytes": "9000000",
    "max.partition.fetch.bytes": "5000000",
}


def test_what_the_user_chose_holds_on_both_ways() -> None:
    """Fetch sizes and the client's name reach librdkafka and the Java client unchanged."""
    kafka = KafkaSettings(properties=CHOSEN)
    in_worker = consumer_properties(librdkafka_properties(kafka))
    assert {name: in_worker[name] for name in CHOSEN} == CHOSEN
    assert CHOSEN.items() <= java_properties(kafka).items()
    options = read_options(kafka, [], tasks=1)
    assert options["kafka.client.id"] == "billing"


def test_the_longest_wait_of_a_fetch_has_another_name_in_java() -> None:
    """The user writes librdkafka's name, and both clients wait no longer."""
    kafka = KafkaSettings(properties={"fetch.wait.max.ms": "70"})
    assert consumer_properties(librdkafka_properties(kafka))["fetch.wait.max.ms"] == "70"
    found = java_properties(kafka)
    assert found["fetch.max.wait.ms"] == "70"
    assert "fetch.wait.max.ms" not in found


def test_what_exactness_needs_is_not_the_users_to_choose() -> None:
    """Only committed records are read, an offset that is gone is an error, no group is joined."""
    found = consumer_properties({"isolation.level": "read_uncommitted", "group.id": "mine"})
    assert found["isolation.level"] == "read_committed"
    assert found["group.id"] == "penstock-reader"
    assert found["auto.offset.reset"] == "error"


def test_small_fetches_are_the_default() -> None:
    """With many partitions most of a larger fetch would be thrown away."""
    assert consumer_properties({})["max.partition.fetch.bytes"] == 262_144
