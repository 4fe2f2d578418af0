"""Loads the settings: flags win over the environment, the environment over the file.

Every value keeps its origin. An unknown option is an error that suggests the nearest known name. A
secret may come only from the environment or from a file named by `<option>_file`.
"""

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_origin

from pydantic import ValidationError

from penstock.errors import SettingsError
from penstock.settings.objective import with_objective
from penstock.settings.secret import Secret
from penstock.settings.sections import Settings, TableSettings
from penstock.settings.sections.controller import CONSUMERS_MAX_ELSE
from penstock.settings.snapshot_mark import snapshot_mark
from penstock.settings.tree import OptionPath, known_options, secret_options
from penstock.settings.yaml_text import read_yaml

ENVIRONMENT_PREFIX = "PENSTOCK_"
# Variables that are not settings: cache, settings file, jar mirror, consumer id, health port.
ENVIRONMENT_RESERVED = frozenset(
    {"CACHE", "SETTINGS", "JAR_REPOSITORY", "CONSUMER_ID", "HEALTH_PORT"}
)
ENVIRONMENT_RESERVED_PREFIX = "TEST_"
DEFAULT_FILE = "penstock.yaml"
SETTINGS_FILE_BYTES_MAX = 1024 * 1024
# A core starts a consumer in about two seconds and carries tens of megabytes a second: more
# consumers than this only slow each other down.
LOCAL_CONSUMERS_PER_CORE = 4
_CONSUMERS_MAX: OptionPath = ("controller", "consumers_max")
# Options of earlier releases, and what to do instead.
_REMOVED = {
    "controller.capacity_is_learned": "Leave it out: `packing.capacity: auto`, the default, "
    "measures what consumers carry; a speed there always counts."
}


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    settings: Settings
    # Only of what was set.
    origin: Mapping[OptionPath, str]
    file: Path | None
    # What follows the machine or the objective, and why it is as it is.
    derived: Mapping[OptionPath, str] = field(default_factory=dict)
    # What was set, as it was written, without secrets; and the files from which secrets came.
    given: Mapping[OptionPath, Any] = field(default_factory=dict)
    secret_files: Mapping[OptionPath, str] = field(default_factory=dict)
    # Whether `file` is the group's own copy of the file it was started with, and then which.
    is_snapshot: bool = False
    snapshot_of: Path | None = None


@dataclass(frozen=True, slots=True)
class _SourcedValue:
    """One value and where it comes from."""

    path: OptionPath
    value: Any
    origin: str
    may_be_secret: bool = False
    # Of a secret that was read from a file.
    secret_file: str | None = None


def load_settings(
    file: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    cores: int | None = None,
) -> LoadedSettings:
    """The effective settings; `flags` maps dotted option names to values.

    `cores` are those of this machine, unless told otherwise.
    """
    environment = os.environ if environment is None else environment
    file = _settings_file(file, environment)
    given: dict[OptionPath, _SourcedValue] = {}
    text = "" if file is None else _text_of(file)
    mark = snapshot_mark(text)
    for layer in (_from_file(file, text), _from_environment(environment), _from_flags(flags or {})):
        for one in layer:
            checked = _checked(one)
            given[checked.path] = checked
    tree: dict[str, Any] = {}
    for one in given.values():
        section = tree
        for name in one.path[:-1]:
            section = section.setdefault(name, {})
        section[one.path[-1]] = one.value
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        raise _first_error(error, given) from None
    origin = {path: one.origin for path, one in given.items()}
    if mark is not None:
        # What the copy has, and nothing since has changed, comes from where the copy has it from.
        of_copy = {p for p, one in given.items() if _source_of(one) == str(file)}
        origin |= {path: mark.origins[path] for path in of_copy & mark.origins.keys()}
    cores = len(os.sched_getaffinity(0)) if cores is None else cores
    settings, derived = _for_this_machine(settings, cores)
    settings, reasons = with_objective(settings)
    derived |= {tuple(name.split(".")): reason for name, reason in reasons.items()}
    return LoadedSettings(
        settings,
        origin,
        file,
        derived,
        given={p: one.value for p, one in given.items() if p not in secret_options()},
        secret_files={p: one.secret_file for p, one in given.items() if one.secret_file},
        is_snapshot=mark is not None,
        snapshot_of=None if mark is None else mark.file,
    )


def _for_this_machine(settings: Settings, cores: int) -> tuple[Settings, dict[OptionPath, str]]:
    """Local consumers share the machine: unless told otherwise, its cores bound their number."""
    own = settings.controller
    if own.consumers_max is not None:
        return settings, {}
    if own.deployment == "local":
        most = max(LOCAL_CONSUMERS_PER_CORE * cores, own.consumers_min)
        why = f"default: {LOCAL_CONSUMERS_PER_CORE} for each of {cores} cores of this machine"
    else:
        most, why = CONSUMERS_MAX_ELSE, "default: the bound where consumers are not local"
    bounded = own.model_copy(update={"consumers_max": most})
    return settings.model_copy(update={"controller": bounded}), {_CONSUMERS_MAX: why}


def _settings_file(file: Path | None, environment: Mapping[str, str]) -> Path | None:
    named = file or (Path(text) if (text := environment.get("PENSTOCK_SETTINGS")) else None)
    if named is not None:
        return named
    default = Path(DEFAULT_FILE)
    return default if default.is_file() else None


def _source_of(one: _SourcedValue) -> str:
    """The origin without the file that a secret was read from."""
    return one.origin.removesuffix(f" (file {one.secret_file})")


def _text_of(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(SETTINGS_FILE_BYTES_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"Could not read the settings file {file}: {error}.") from error
    if len(text) > SETTINGS_FILE_BYTES_MAX:
        raise SettingsError(f"{file} is too large for a settings file.")
    return text


def _from_file(file: Path | None, text: str) -> Iterator[_SourcedValue]:
    content = read_yaml(text, str(file))
    if content is None:
        return
    yield from _flatten(content, (), str(file))


def _flatten(content: Any, path: OptionPath, origin: str) -> Iterator[_SourcedValue]:
    """Walk down the sections; what is found at a known option is its value."""
    if path in known_options() or path in _secret_files():
        yield _SourcedValue(path, content, origin)
    elif isinstance(content, Mapping) and (content or not path):
        for name, below in content.items():
            yield from _flatten(below, (*path, str(name)), origin)
    elif not content and _is_section(path):
        return  # a section with everything commented out
    else:
        yield _SourcedValue(path, content, origin)


def _from_environment(environment: Mapping[str, str]) -> Iterator[_SourcedValue]:
    for variable in sorted(environment):
        name = variable.removeprefix(ENVIRONMENT_PREFIX)
        if name == variable or name in ENVIRONMENT_RESERVED:
            continue
        if name.startswith(ENVIRONMENT_RESERVED_PREFIX):
            continue
        path = option_of_variable(variable)
        value = environment[variable]
        yield _SourcedValue(
            path, _typed(path, value), f"environment {variable}", may_be_secret=True
        )


def option_of_variable(variable: str) -> OptionPath:
    """`PENSTOCK_LAKE__ROOT` sets `lake.root`, if there is such an option."""
    return tuple(part.lower() for part in variable.removeprefix(ENVIRONMENT_PREFIX).split("__"))


def _from_flags(flags: Mapping[str, Any]) -> Iterator[_SourcedValue]:
    for name, value in flags.items():
        path = tuple(name.split("."))
        yield _SourcedValue(path, _typed(path, value), f"flag for {name}")


def _typed(path: OptionPath, value: Any) -> Any:
    """Text of a flag or variable: lists and mappings are YAML, the rest stays text."""
    kind = known_options().get(path)
    if isinstance(value, str) and kind is not None and kind.is_collection:
        name, is_list = ".".join(path), get_origin(kind.annotation) is list
        example = '["orders.*", "payments"]' if is_list else '{"name": "value"}'
        remedy = f"Write it with quotes inside of quotes: {name}='{example}'."
        return read_yaml(value, name, remedy=remedy)  # the value may have secrets in it
    return value


def _checked(one: _SourcedValue) -> _SourcedValue:
    """The value under its option's path, with secrets wrapped; or an error."""
    name = ".".join(one.path)
    if one.path in secret_options():
        if not one.may_be_secret:
            raise SettingsError(
                f"{one.origin}: {name} is a secret and is not allowed here.",
                remedy=f"Put it into a file and set {name}_file, or use the environment.",
            )
        return _SourcedValue(one.path, _secret(one.origin, str(one.value)), one.origin)
    if one.path in _secret_files():
        origin = f"{one.origin} (file {one.value})"
        return _SourcedValue(
            (*one.path[:-1], one.path[-1].removesuffix("_file")),
            _secret(origin, _read_secret(name, Path(str(one.value)))),
            origin,
            secret_file=str(one.value),
        )
    if one.path not in known_options():
        raise _unknown(name, one.origin)
    return one


def _secret(origin: str, text: str) -> Secret:
    """An empty one would be a lock that everybody opens: a file that was never filled, mostly."""
    if not text.strip():
        raise SettingsError(
            f"{origin}: the secret is empty.", remedy="Fill it, or take the option out."
        )
    return Secret(text)


def _read_secret(name: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"{name}: could not read the secret from {file}: {reason}.") from None


def _unknown(name: str, origin: str) -> SettingsError:
    known = sorted(".".join(path) for path in (*known_options(), *_secret_files()))
    near = difflib.get_close_matches(name, known, n=1)
    remedy = f"Did you mean {near[0]}?" if near else "`penstock settings reference` lists all."
    remedy = _REMOVED.get(name, remedy)
    return SettingsError(f"{_source(origin, name)}: unknown setting {name}.", remedy=remedy)


def _source(origin: str, name: str) -> str:
    """The origin without the option's name, which the message says anyway."""
    return origin.removesuffix(f" for {name}")


def _secret_files() -> frozenset[OptionPath]:
    return frozenset((*path[:-1], f"{path[-1]}_file") for path in secret_options())


def _is_section(path: OptionPath) -> bool:
    return any(known[: len(path)] == path for known in known_options())


def _first_error(
    error: ValidationError, given: Mapping[OptionPath, _SourcedValue]
) -> SettingsError:
    """One message: the value's origin, its option, and what is wrong."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    location = tuple(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return _unknown_key(location, given)
    reason = first["msg"].removeprefix("Value error, ")
    if not location:  # two sections do not fit together; the reason names both options
        return SettingsError(f"{reason}.")
    origin = _origin_of(location, given)
    name = ".".join(_option_part(location))
    return SettingsError(f"{_source(origin, name)}: {name}: {reason}.")


def _unknown_key(location: OptionPath, given: Mapping[OptionPath, _SourcedValue]) -> SettingsError:
    """A key inside the value of an option, such as `lake.tables.orders.transformations`."""
    name, key = ".".join(location), location[-1]
    near = difflib.get_close_matches(key, sorted(TableSettings.model_fields), n=1)
    known = ", ".join(sorted(TableSettings.model_fields))
    remedy = f"Did you mean {near[0]}?" if near else f"A table has {known}."
    origin = _origin_of(location, given)
    option = ".".join(_option_part(location))
    return SettingsError(f"{_source(origin, option)}: unknown setting {name}.", remedy=remedy)


def _origin_of(location: OptionPath, given: Mapping[OptionPath, _SourcedValue]) -> str:
    return next(
        (
            one.origin
            for path, one in given.items()
            # An error of a whole section has the section's name only.
            if location[: len(path)] == path or path[: len(location)] == location
        ),
        "settings",
    )


def _option_part(location: Sequence[str]) -> Sequence[str]:
    for length in range(len(location), 0, -1):
        if tuple(location[:length]) in known_options():
            return location[:length]
    return location
