"""`penstock topics create` says that the topics can serve only when every one is visible."""

import pytest

from kit.program import invoked
from penstock.cli import topics
from penstock.topics import TopicState
from penstock.topics.control_topics import TopicFinding


def answers(monkeypatch: pytest.MonkeyPatch, *states: TopicState) -> list[TopicState]:
    """The cluster's answers, one after the other; the last one stays."""
    left = list(states)

    def findings(*_: object) -> list[TopicFinding]:
        state = left.pop(0) if len(left) > 1 else left[0]
        return [TopicFinding("data-engineering-service", state, "is not as it should be")]

    monkeypatch.setattr(topics, "make_control_topics", lambda *_, **__: [])
    monkeypatch.setattr(topics, "Administration", lambda _: None)
    monkeypatch.setattr(topics, "findings_for", findings)
    monkeypatch.setattr(topics, "VISIBLE_PAUSE_S", 0.0)
    return left


def test_a_topic_that_is_not_visible_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command ends with 0 when the second answer has the topic."""
    left = answers(monkeypatch, TopicState.MISSING, TopicState.OK)
    assert invoked("topics", "create").exit_code == 0
    assert left == [TopicState.OK]


def test_a_topic_that_never_shows_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """After `kafka.answer_timeout` the command fails and names the topic."""
    answers(monkeypatch, TopicState.MISSING)
    result = invoked("topics", "create", "--set", "kafka.answer_timeout=100ms")
    assert result.exit_code != 0
    assert "data-engineering-service" in str(result.exception)


@pytest.mark.parametrize("is_told", [True, False])
def test_a_topic_that_is_not_needed_is_not_called_usable(
    monkeypatch: pytest.MonkeyPatch, *, is_told: bool
) -> None:
    """It is said once what lacks, by who tried to make it or by who looked."""
    answers(monkeypatch, TopicState.OK)
    lacks = TopicFinding("data-engineering-commit", TopicState.UNUSABLE, "has cleanup.policy x")
    monkeypatch.setattr(topics, "optional_findings", lambda *_: [lacks])
    if is_told:
        told = "data-engineering-commit: could not be made"
        monkeypatch.setattr(topics, "make_control_topics", lambda *_, **__: [told])
    result = invoked("topics", "create")
    assert result.exit_code == 0
    assert "All control topics that are needed are usable." in result.output
    assert result.output.count("data-engineering-commit") == 1
