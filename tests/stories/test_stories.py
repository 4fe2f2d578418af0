"""One story per situation of the owner's notes: inputs and the expected trace."""

from pathlib import Path

import pytest

from kit.controller.story import Storyteller, replayed
from kit.generated_files import assert_up_to_date

STORIES = sorted(Path(__file__).parent.glob("*.story"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_story_goes_as_written(path: Path) -> None:
    """The controller does exactly what the story says, in the same order."""
    assert_up_to_date(path, replayed(path.read_text(encoding="utf-8")), "make stories")


def test_there_are_enough_stories() -> None:
    """Every situation of the owner's notes has a story."""
    assert len(STORIES) >= 20


def test_a_line_that_means_nothing_is_refused() -> None:
    """An unknown line in a story is an error."""
    with pytest.raises(ValueError, match="no such line"):
        Storyteller().tell("consumer 1 does something")
