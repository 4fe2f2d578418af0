"""Before the parts of a group are started: could its consumers work at all?

What is wrong without Spark is told before a Spark server is started.
"""

from collections.abc import Callable, Sequence

from penstock.deployment.interface import TrialOutcome
from penstock.errors import PenstockError, SettingsError
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
    trial: Trial, flags: Sequence[str], tell: Tell, require_wanted: Callable[[], None]
) -> None:
    """The lake, and each transformation on a few records."""
    require_wanted()
    tell("trying the lake and the transformations")
    _try(trial, flags, tell, require_wanted)


def _try(
    trial: Trial, flags: Sequence[str], tell: Tell, require_wanted: Callable[[], None]
) -> None:
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
