"""The controller's state at the present place of a story."""

from kit.controller.story import Storyteller
from penstock.controller.core.state import State


def state_of(teller: Storyteller) -> State:
    """Fails before the story has started a controller."""
    assert teller.state is not None
    return teller.state
