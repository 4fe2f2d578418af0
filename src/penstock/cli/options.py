"""Options that many commands share, and how they become settings."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from penstock.errors import UsageError
from penstock.settings import LoadedSettings, load_settings
from penstock.telemetry import Health, HealthServer, configure_logs

SettingsFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        "-f",
        metavar="FILE",
        help="The settings file. Default: $PENSTOCK_SETTINGS, or penstock.yaml if it exists.",
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
        "--bootstrap-server", metavar="HOST:PORT", help="Kafka's address; several with commas."
    ),
]
TopicNames: TypeAlias = Annotated[
    list[str] | None, typer.Option("--topic", help="Only this topic. May be repeated.")
]
HealthPort: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--health-port",
        min=1,
        max=65535,
        envvar="PENSTOCK_HEALTH_PORT",
        help="Serve /healthz and /readyz on this port of every interface. Default: off.",
    ),
]


def named_values(overrides: list[str] | None, given_to: str = "--set") -> dict[str, str]:
    """The values given with `--set` (or to a request), by the name of the option."""
    found = {}
    for text in overrides or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{given_to} takes NAME=VALUE, got {text!r}.")
        found[name.strip()] = value
    return found


def given_flags(overrides: list[str] | None, bootstrap_server: str | None) -> dict[str, Any]:
    """The options of the command line as `load_settings` takes them."""
    flags: dict[str, Any] = {**named_values(overrides)}
    if bootstrap_server is not None:
        flags["kafka.bootstrap_servers"] = bootstrap_server
    return flags


def effective_settings(
    file: Path | None, overrides: list[str] | None, bootstrap_server: str | None = None
) -> LoadedSettings:
    """Load the settings for this command and configure the logs."""
    loaded = load_settings(file, given_flags(overrides, bootstrap_server))
    configure_logs(loaded.settings.log.level, loaded.settings.log.format)
    return loaded


@contextmanager
def health_answers(port: int | None, *, alive_within_s: float = 60.0) -> Iterator[Health]:
    """The health of this process; served over HTTP if there is a port."""
    health = Health(alive_within_s=alive_within_s)
    if port is None:
        yield health
    else:
        with HealthServer(health, port):
            yield health
