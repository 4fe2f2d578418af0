"""Gives a child process exactly the settings of this one, whatever else this one was started with.

The environment wins over a file, so the child's environment keeps no variable that sets an option,
but for secrets: those are never in a file of ours. A secret that came from a file is read from that
file again.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from penstock.settings.load import (
    ENVIRONMENT_PREFIX,
    ENVIRONMENT_RESERVED_PREFIX,
    option_of_variable,
)
from penstock.settings.sections import Settings
from penstock.settings.tree import OptionPath, secret_options

# Where things are kept and fetched from. The other variables are of one process alone.
_KEPT_VARIABLES = frozenset({"CACHE", "JAR_REPOSITORY"})


def settings_text(settings: Settings, secret_files: Mapping[OptionPath, str]) -> str:
    """A settings file with every option; of the secrets only the files that they came from."""
    tree: dict[str, Any] = settings.model_dump(mode="json")
    for path in secret_options():
        section = _section_of(tree, path)
        del section[path[-1]]
        if path in secret_files:
            section[f"{path[-1]}_file"] = secret_files[path]
    return yaml.safe_dump(tree, sort_keys=True)


def environment_beside(
    settings: Settings, secret_files: Mapping[OptionPath, str], environment: Mapping[str, str]
) -> dict[str, str]:
    """The environment of a child that is given `settings_text`."""
    values = settings.model_dump()
    from_variables = {
        path
        for path in secret_options() - secret_files.keys()
        if _section_of(values, path)[path[-1]] is not None
    }
    return {
        variable: value
        for variable, value in environment.items()
        if _is_kept(variable) or option_of_variable(variable) in from_variables
    }


def _is_kept(variable: str) -> bool:
    name = variable.removeprefix(ENVIRONMENT_PREFIX)
    is_of_tests = name.startswith(ENVIRONMENT_RESERVED_PREFIX)
    return name == variable or name in _KEPT_VARIABLES or is_of_tests


def _section_of(tree: dict[str, Any], path: OptionPath) -> dict[str, Any]:
    for name in path[:-1]:
        tree = tree[name]
    return tree
