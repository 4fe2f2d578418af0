"""The options that many commands share, and how they become settings."""

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from penstock.errors import UsageError
from penstock.settings import LoadedSettings, load_settings
from penstock.telemetry import configure_logs

SettingsFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        "-f",
        metavar="FILE",
        help="The settings file. Default: $PENSTOCK_SETTINGS, or penstock.yaml if it is here.",
    ),
]
Overrides: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set one option, for instance `--set kafka.answer_timeout=5s`. May be repeated.",
    ),
]
BootstrapServer: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server", metavar="HOST:PORT", help="Where to find Kafka; several with commas."
    ),
]


def effective_settings(
    file: Path | None, overrides: list[str] | None, bootstrap_server: str | None = None
) -> LoadedSettings:
    """The settings as this call has them; logs are set up to match."""
    flags: dict[str, Any] = {}
    for text in overrides or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set takes NAME=VALUE, got {text!r}.")
        flags[name.strip()] = value
    if bootstrap_server is not None:
        flags["kafka.bootstrap_servers"] = bootstrap_server
    loaded = load_settings(file, flags)
    configure_logs(loaded.settings.log.level, loaded.settings.log.format)
    return loaded
