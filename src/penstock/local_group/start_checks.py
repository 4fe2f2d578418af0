"""Before the parts of a group are started: could its consumers work at all?

What is wrong without Spark is told before a Spark server is started.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from penstock.deployment.interface import TrialOutcome
from penstock.errors import PenstockError, SettingsError
from penstock.model.sentences import speed_text
from penstock.monitor.included_topics import none_included
from penstock.settings import Settings

Trial = Callable[[Sequence[str]], TrialOutcome]
Tell = Callable[[str], None]


def tell_if_nothing_matches(settings: Settings, tell: Tell) -> None:
    """Topics may be made later, so a pattern that matches none is no reason not to start."""
    nothing = none_included(settings)
    if nothing is not None:
        tell(f"warning: {nothing}")


def try_imports(
    trial: Trial,
    settings: Settings,
    flags: Sequence[str],
    tell: Tell,
    require_wanted: Callable[[], None],
) -> None:
    """The lake, and whether the transformations can be imported, if there are any."""
    if any(table.transformation for table in settings.lake.tables.values()):
        tell("trying the lake and importing the transformations")
        _try(trial, ["--without-spark", *flags], tell, require_wanted)


def try_out(
    trial: Trial,
    flags: Sequence[str],
    tell: Tell,
    require_wanted: Callable[[], None],
    *,
    calibrates: bool = False,
) -> dict[str, float]:
    """The lake, and each transformation on a few records.

    With `calibrates` also what one consumer carries of the largest topics, in bytes a second.
    """
    require_wanted()
    tell("trying the lake and the transformations")
    asked = ["--calibrate", *flags] if calibrates else flags
    found = dict(_try(trial, asked, tell, require_wanted).capacities)
    for topic, bytes_per_s in found.items():
        tell(f"one consumer carries about {speed_text(bytes_per_s)} of {topic}")
    return found


def is_first_start(settings: Settings) -> bool:
    """Whether nothing is known of the capacity: a group that ran before has kept it."""
    ran_before = (Path(settings.controller.directory) / "controller").is_dir()
    return settings.packing.is_capacity_measured and not ran_before


def as_flags(capacities: Mapping[str, float]) -> list[str]:
    """What one consumer carries of topics, for the controller."""
    known = (f"{topic}={bytes_per_s:.0f}B/s" for topic, bytes_per_s in capacities.items())
    return [word for one in known for word in ("--calibrated", one)]


def _try(
    trial: Trial, flags: Sequence[str], tell: Tell, require_wanted: Callable[[], None]
) -> TrialOutcome:
    found = trial(flags)
    require_wanted()
    if found.refusal:
        is_of_settings = found.exit_code == SettingsError.exit_code
        kind = SettingsError if is_of_settings else PenstockError
        raise kind(f"The group was not started: {found.refusal}")
    if found.note:
        tell(f"not tried: {found.note}")
    if found.doubt:
        tell(f"warning: the group starts all the same, but {found.doubt}")
    return found
