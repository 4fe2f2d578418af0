"""Compares the control topics of a cluster with what they must be; makes and grows them."""

from penstock.errors import PenstockError
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


def needed_topics(settings: Settings, *, highest_consumer_id: int = 0) -> tuple[ControlTopic, ...]:
    """All but the topic for commits of many together, unless the settings ask for them."""
    found = control_topics(settings.topics, highest_consumer_id=highest_consumer_id)
    left_out = "" if settings.lake.commits == "together" else settings.topics.names.commit
    return tuple(topic for topic in found if topic.name != left_out)


def optional_topics(settings: Settings) -> tuple[ControlTopic, ...]:
    """The topic for commits of many together, where they are made only if it is there (`auto`)."""
    if settings.lake.commits != "auto" or not settings.lake.commits_together:
        return ()
    commit = settings.topics.names.commit
    return tuple(topic for topic in control_topics(settings.topics) if topic.name == commit)


def optional_findings(administration: Administration, settings: Settings) -> list[TopicFinding]:
    """As `findings_for`, for topics that stop nothing when they cannot even be looked at."""
    wanted = optional_topics(settings)
    try:
        return findings_for(administration, wanted) if wanted else []
    except PenstockError as error:
        explanation = f"could not be looked at: {error.message.rstrip('.')}"
        return [TopicFinding(one.name, TopicState.UNUSABLE, explanation) for one in wanted]


def make_control_topics(settings: Settings, *, highest_consumer_id: int = 0) -> list[str]:
    """Create missing topics, grow small ones; returns what was done. Safe to repeat.

    A cluster that refuses an optional topic stops nothing: each consumer then commits for itself.
    """
    administration = Administration(settings.kafka)
    wanted = needed_topics(settings, highest_consumer_id=highest_consumer_id)
    done = _made(administration, settings, wanted)
    for topic in optional_topics(settings):
        try:
            done += _made(administration, settings, (topic,))
        except PenstockError as error:
            told = "could not be made or looked at, so each consumer commits for itself"
            done.append(f"{topic.name}: {told}: {error.message}")
    return done


def _made(
    administration: Administration, settings: Settings, wanted: tuple[ControlTopic, ...]
) -> list[str]:
    done: list[str] = []
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
