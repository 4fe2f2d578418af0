"""The names of the control topics."""

from penstock.messages.catalogue import MESSAGE_TYPES
from penstock.model import ControlTopicNames
from penstock.settings.sections import TopicsSettings

NAMES = ControlTopicNames("mine")


def test_the_names_follow_the_prefix() -> None:
    """Four topics, each named after the prefix and its role; the default prefix is the owner's."""
    assert NAMES.all == ("mine-monitor", "mine-controller", "mine-query", "mine-service")
    assert NAMES.transactional_id("group") == "mine-group-controller"
    assert TopicsSettings().names.monitor == "data-engineering-monitor"


def test_every_message_belongs_to_one_of_the_topics() -> None:
    """A message's role names a control topic, and the topic gives the role back."""
    roles = {kind.topic_role for kind in MESSAGE_TYPES}
    assert {NAMES.of_role(role) for role in roles} == set(NAMES.all)
    assert {NAMES.role_of(name) for name in NAMES.all} == roles
