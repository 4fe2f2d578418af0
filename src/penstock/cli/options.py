"""Options that many commands share, and how they become settings."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from penstock.errors import UsageError
from penstock.metrics import Process, Sample
from penstock.metrics.of_every_process import READY
from penstock.packing.problem import CAPACITY_BYTES_PER_S_MIN
from penstock.settings import LoadedSettings, load_settings
from penstock.settings.sections import Settings
from penstock.settings.units import parse_speed
from penstock.telemetry import Health, HealthServer, MetricStore, configure_logs
from penstock.telemetry.exposition import MetricsText
from penstock.telemetry.metric_targets import named_target

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
        help="Serve /healthz, /readyz and /metrics on this port of every interface. Default: off.",
    ),
]
Calibrated: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TOPIC=SPEED",
        help="What one consumer carries of a topic until it is measured, such as orders=20MB/s; "
        "`penstock try --calibrate` finds it out.",
    ),
]


def calibrated_topics(given: Sequence[str] | None) -> dict[str, float]:
    """`orders=20MB/s`, once for each topic."""
    found = {}
    for text in given or ():
        topic, _, speed = text.partition("=")
        try:
            found[topic] = parse_speed(speed)
        except ValueError as error:
            raise UsageError(f"--calibrated {text}: {error}.") from None
        if found[topic] < CAPACITY_BYTES_PER_S_MIN:
            raise UsageError(f"--calibrated {text}: no consumer carries so little.")
    return found


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
def health_answers(
    port: int | None,
    settings: Settings,
    process: Process,
    *,
    name: str = "",
    alive_within_s: float = 60.0,
) -> Iterator[tuple[Health, MetricStore]]:
    """The health and the metrics of this process; served over HTTP if there is a port.

    Without a port, and with `telemetry.metrics_targets`, any free port of the loopback address is
    used, and noted there under the name.
    """
    health = Health(alive_within_s=alive_within_s)
    telemetry = settings.telemetry
    metrics = MetricStore(
        settings.lake.group,
        process,
        partition_series_max=telemetry.partition_series_max,
        with_lag_names=telemetry.lag_names,
    )
    metrics.ask(lambda: [Sample(READY, (process.value,), float(health.is_ready))])
    page = MetricsText(metrics)
    if port is not None:
        metrics.is_served = True
        with HealthServer(health, port, metrics=page):
            yield health, metrics
    elif telemetry.metrics_targets:
        metrics.is_served = True
        folder = Path(telemetry.metrics_targets)
        with (
            HealthServer(health, 0, "127.0.0.1", page) as server,
            named_target(folder, name or process.value, server.port),
        ):
            yield health, metrics
    else:
        yield health, metrics
