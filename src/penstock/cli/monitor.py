"""`penstock monitor`: the process that measures and publishes write speeds."""

from penstock.cli.options import (
    BootstrapServer,
    HealthPort,
    Overrides,
    SettingsFile,
    effective_settings,
    health_answers,
)
from penstock.metrics import Process
from penstock.monitor.process import run_monitor, stop_on_signals


def monitor(
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    health_port: HealthPort = None,
) -> None:
    """Measure the write speed of every partition and publish it to `<prefix>-monitor`.

    Runs until SIGTERM or SIGINT, then exits with 0. Keeps running while brokers are away. The
    control topics must exist (`penstock topics create`). `penstock speeds` shows the speeds.

    Examples:
    `penstock monitor --bootstrap-server broker:9092`

    `penstock monitor --set 'monitor.include=[orders.*]' --set monitor.period=500ms`

    """
    loaded = effective_settings(settings, overrides, bootstrap_server)
    # A round may last several periods while brokers are silent.
    alive_within_s = max(60.0, 5 * loaded.settings.monitor.period)
    with health_answers(
        health_port, loaded.settings, Process.MONITOR, alive_within_s=alive_within_s
    ) as (health, metrics):
        run_monitor(loaded.settings, stop_on_signals(), health, metrics)
