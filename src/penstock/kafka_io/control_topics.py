"""Compares the control topics of a cluster with what they must be; makes and grows them."""

from penstock.kafka_io.administration import Administration
from penstock.model.sentences import counted
from penstock.settings import Settings
from penstock.topics.control_topics import (
    ControlTopic,
    SeenTopic,
    TopicFinding,
    TopicState,
    compare,
    control_topics,
)


def findings_for(
    administration: Administration, wanted: tuple[ControlTopic, ...]
) -> list[TopicFinding]:
    """What the cluster has, compared with what is wanted."""
    views = administration.topics([topic.name for topic in wanted])
    settings = administration.topic_settings(views)
    found: list[TopicFinding] = []
    for topic in wanted:
        view = views.get(topic.name)
        seen = None if view is None else SeenTopic(view.partitions, settings[topic.name])
        found += compare(topic, seen)
    return found


def make_control_topics(settings: Settings, *, highest_consumer_id: int = 0) -> list[str]:
    """Create missing topics, grow small ones; returns what was done. Safe to repeat."""
    administration = Administration(settings.kafka)
    wanted = control_topics(settings.topics, highest_consumer_id=highest_consumer_id)
    done = []
    verdicts = {(one.topic, one.verdict) for one in findings_for(administration, wanted)}
    for topic in wanted:
        if (topic.name, TopicState.MISSING) in verdicts:
            made = administration.create_topic(
                topic.name,
                partitions=topic.partitions,
                replication_factor=settings.topics.replication_factor,
                settings=topic.settings,
            )
            if made:
                done.append(f"{topic.name}: created with {counted(topic.partitions, 'partition')}")
        elif (topic.name, TopicState.TOO_FEW_PARTITIONS) in verdicts:
            grown = administration.grow_topic(topic.name, topic.partitions)
            if grown:
                done.append(f"{topic.name}: grown to {counted(topic.partitions, 'partition')}")
    return done
