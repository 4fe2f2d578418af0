"""A cluster whose topics and rights somebody else makes: only what is needed is asked for."""

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import NotPermittedError
from penstock.kafka_io import control_topics as module
from penstock.kafka_io.control_topics import (
    make_control_topics,
    needed_topics,
    optional_findings,
    optional_topics,
)
from penstock.settings import Settings, changed_settings
from penstock.topics import TopicState, control_topics

COMMIT = Settings().topics.names.commit


class GuardedCluster:
    """Nobody may see the topic of commits; all others are there."""

    def __init__(self, _: object) -> None:
        wanted = control_topics(Settings().topics, highest_consumer_id=1)
        self._there = {one.name: one for one in wanted}

    def topics(self, names: Collection[str]) -> Mapping[str, Any]:
        if COMMIT in names:
            raise NotPermittedError(f"Kafka refuses: may not describe {COMMIT}.")
        return {name: SimpleNamespace(partitions=self._there[name].partitions) for name in names}

    def topic_settings(self, names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        return {name: self._there[name].settings for name in names}


def settings_with(commits: str, root: str = "lake") -> Settings:
    return changed_settings(Settings(), {"lake.commits": commits, "lake.root": root})


def test_a_topic_that_is_not_needed_stops_no_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller makes mailboxes before each consumer, with the rights that it has."""
    monkeypatch.setattr(module, "Administration", GuardedCluster)
    assert make_control_topics(settings_with("alone"), highest_consumer_id=1) == []
    with pytest.raises(NotPermittedError, match=COMMIT):
        make_control_topics(settings_with("together"), highest_consumer_id=1)


def test_a_topic_that_nobody_asked_for_stops_no_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    """On S3 consumers commit together by default; without the right to it each for itself."""
    monkeypatch.setattr(module, "Administration", GuardedCluster)
    assert make_control_topics(settings_with("auto"), highest_consumer_id=1) == []
    (told,) = make_control_topics(settings_with("auto", "s3://lake"), highest_consumer_id=1)
    assert told.startswith(f"{COMMIT}: could not be made or looked at, so each ")
    assert "may not describe" in told
    cluster: Any = GuardedCluster(None)
    (found,) = optional_findings(cluster, settings_with("auto", "s3://lake"))
    assert (found.topic, found.verdict) == (COMMIT, TopicState.UNUSABLE)
    # Commands put it behind the topic's name, and go on with the sentence.
    refused = f"Kafka refuses: may not describe {COMMIT}"
    assert found.explanation == f"could not be looked at: {refused}"
    assert optional_findings(cluster, settings_with("auto")) == []


def test_which_topics_are_needed() -> None:
    """Seven; the one for commits where the settings say so, and by default on S3 if it can be."""
    names = Settings().topics.names.all
    others = set(names) - {COMMIT}
    assert {one.name for one in needed_topics(settings_with("together"))} == set(names)
    for settings in (settings_with("alone", "s3://lake"), Settings()):
        assert {one.name for one in needed_topics(settings)} == others
        assert optional_topics(settings) == ()
    assert optional_topics(settings_with("together", "s3://lake")) == ()
    by_default = settings_with("auto", "s3://lake")
    assert {one.name for one in needed_topics(by_default)} == others
    assert [one.name for one in optional_topics(by_default)] == [COMMIT]
