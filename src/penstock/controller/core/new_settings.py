"""The operator's settings when they come anew: at a start, and when a file is rolled out.

The later one wins. What a request changed holds while the operator's settings stay as they were;
what was edited since counts instead, and the history says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.controller.core.decisions import Code
from penstock.controller.core.settings import (
    LiveChange,
    controller_settings,
    overtaken_changes,
    valid_overrides,
    with_overrides,
)
from penstock.controller.core.state import State
from penstock.controller.core.step_draft import StepDraft
from penstock.packing.trigger import try_again
from penstock.settings.sections import Settings

# What a running process cannot change: where it is connected, and what others know it by.
_FIXED_SECTIONS = ("kafka", "topics", "monitor", "kubernetes", "log")
_FIXED = (
    "lake.root",
    "lake.group",
    "controller.directory",
    "controller.deployment",
    "spark.master",
)


@dataclass(frozen=True, slots=True)
class KeptChanges:
    overrides: Mapping[str, Any]
    origins: Mapping[str, LiveChange]
    # Why each of the others is gone.
    dropped: tuple[str, ...]


def kept_changes(settings: Settings, before: State) -> KeptChanges:
    """What requests had changed, and still holds with these settings."""
    overtaken = overtaken_changes(settings, before.overrides, before.override_origins)
    left = {o: value for o, value in before.overrides.items() if o not in overtaken}
    overrides, invalid = valid_overrides(settings, left)
    return KeptChanges(
        overrides,
        {o: one for o, one in before.override_origins.items() if o in overrides},
        (
            *(
                f"{o} from an earlier request is no longer valid: {why}"
                for o, why in invalid.items()
            ),
            *(f"{o}: {why}" for o, why in overtaken.items()),
        ),
    )


def adopt_settings(draft: StepDraft, settings: Settings) -> None:
    """Go on with these settings, in the middle of the work."""
    kept = kept_changes(settings, draft.state)
    draft.change(
        chosen=settings,
        settings=controller_settings(
            with_overrides(settings, kept.overrides, draft.state.followed)
        ),
        overrides=kept.overrides,
        override_origins=kept.origins,
        trigger=try_again(draft.state.trigger),
    )
    for explanation in kept.dropped:
        draft.decide(Code.SETTING_DROPPED, explanation)


def need_a_restart(before: Settings, after: Settings) -> list[str]:
    """The options that differ and that no roll-out of consumers brings into force."""
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    differing = [
        f"{section}.{name}"
        for section in new
        for name in new[section]
        if old[section][name] != new[section][name]
    ]
    return [one for one in differing if one in _FIXED or one.split(".")[0] in _FIXED_SECTIONS]
