"""Settings with some options replaced are checked like a settings file."""

from typing import Any

import pytest

from penstock.errors import SettingsError
from penstock.settings import Settings, changed_settings, load_settings


@pytest.mark.parametrize(
    ("changes", "explanation"),
    [
        ({"packing.nosuch": 1}, "unknown setting packing.nosuch."),
        ({"packing.knob": 7}, "packing.knob: Input should be"),
        ({"controller.silence": "3s"}, "consumer.report_period (2s) is more than half of"),
        ({"consumer.grace": "50s"}, "controller.consumer_grace (40s) is not longer than"),
    ],
)
def test_a_change_that_the_file_could_not_have_is_refused(
    changes: dict[str, Any], explanation: str
) -> None:
    """Also one that does not fit an option of another section, with the file's own sentence."""
    with pytest.raises(SettingsError) as raised:
        changed_settings(Settings(), changes)
    assert explanation in str(raised.value)
    with pytest.raises(SettingsError) as from_file:
        load_settings(flags=changes, environment={})
    assert explanation in str(from_file.value)


def test_changes_of_two_sections_are_checked_together() -> None:
    """A pair that fits is accepted, though neither would fit what the other was."""
    changed = changed_settings(
        Settings(), {"controller.silence": "60s", "consumer.report_period": "20s"}
    )
    assert (changed.controller.silence, changed.consumer.report_period) == (60.0, 20.0)
    assert changed.packing == Settings().packing
