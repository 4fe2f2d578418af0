"""Settings with some options replaced, checked like the settings file.

For requests to a running controller, and for simulations and tests: they start from the catalogue's
defaults and name only what they change.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from penstock.errors import SettingsError
from penstock.settings.objective import with_objective
from penstock.settings.secret import Secret
from penstock.settings.sections import Settings
from penstock.settings.tree import known_options


def changed_settings(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """`changes` maps dotted option names to values as a settings file has them.

    SettingsError for an unknown option and for a value that the file could not have.
    """
    by_section: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        if tuple(name.split(".")) not in known_options():
            raise SettingsError(f"unknown setting {name}.")
        section, _, option = name.partition(".")
        by_section.setdefault(section, {})[option] = value
    changed = {}
    for section, values in by_section.items():
        before = getattr(settings, section)
        # A dump has no secrets. What nobody has set follows the objective again.
        secrets = {name: one for name, one in before if isinstance(one, Secret)}
        given = before.model_dump(exclude_unset=True) | secrets | values
        try:
            changed[section] = type(before).model_validate(given)
        except ValidationError as error:
            raise _first_error(section, error) from None
    sections = {name: getattr(settings, name) for name in type(settings).model_fields}
    try:
        after = type(settings).model_validate({**sections, **changed})
    except ValidationError as error:  # two sections do not fit together; the reason names both
        raise SettingsError(f"{_reason(error)}.") from None
    return with_objective(after)[0]


def _first_error(section: str, error: ValidationError) -> SettingsError:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    name = ".".join((section, *(str(part) for part in first["loc"])))
    return SettingsError(f"{name}: {_reason(error)}.")


def _reason(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return first["msg"].removeprefix("Value error, ")
