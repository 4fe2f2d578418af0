"""The names of the control topics."""

from penstock.messages.catalogue import MESSAGE_TYPES
from penstock.model import ControlTopicNames
from penstock.settings.sections import TopicsSettings

NAMES = ControlTopicNames("mine")


def test_the_names_follow_the_prefix() -> None:
    """Eight topics, each named after the prefix and its role; the default prefix is the owner's."""
    roles = ("monitor", "controller", "consumer", "query", "service", "state", "status", "commit")
    assert NAMES.all == tuple(f"mine-{role}" for role in roles)
    assert NAMES.transactional_id("group") == "mine-group-controller"
    assert TopicsSettings().names.monitor == "data-engineering-monitor"


def test_every_message_belongs_to_one_of_the_topics() -> None:
    """A message's role names a control topic, and the topic gives the role back.

    State and status are no messages: the one is for the next controller, the other for people.
    """
    roles = {kind.topic_role for kind in MESSAGE_TYPES} | {"state", "status"}
    assert {NAMES.of_role(role) for role in roles} == set(NAMES.all)
    assert {NAMES.role_of(name) for name in NAMES.all} == roles
