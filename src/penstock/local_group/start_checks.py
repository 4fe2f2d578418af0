"""Before the parts of a group are started: could its consumers work at all?

What is wrong without Spark is told before a Spark server is started.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from penstock.controller.process.saved_states import topics_with_a_capacity
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
    known: Collection[str] = (),
) -> dict[str, float]:
    """The lake, and each transformation on a few records.

    With `calibrates` also what one consumer carries of the largest topics, in bytes a second, but
    for those of which that is known.
    """
    require_wanted()
    tell("trying the lake and the transformations")
    but = (word for topic in sorted(known) for word in ("--known", topic))
    asked = ["--calibrate", *but, *flags] if calibrates else flags
    found = _try(trial, asked, tell, require_wanted)
    for topic, bytes_per_s in found.capacities.items():
        about = "at least" if topic in found.at_least else "about"
        tell(f"one consumer carries {about} {speed_text(bytes_per_s)} of {topic}")
    return dict(found.capacities)


def known_topics(settings: Settings) -> frozenset[str]:
    """Of which a group that ran in this folder before has kept what one consumer carries."""
    return topics_with_a_capacity(Path(settings.controller.directory), settings.lake.group)


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
    for doubt in filter(None, (found.doubt, found.warning)):
        tell(f"warning: the group starts all the same, but {doubt}")
    return found
