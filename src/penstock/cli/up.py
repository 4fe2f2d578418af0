"""`penstock up`: runs the whole group on one machine."""

import signal
from threading import Event

from penstock.cli.console import say
from penstock.cli.controller import settings_arguments
from penstock.cli.jars import fetch_with_progress
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.cli.settings_in_force import StartingChanges
from penstock.cli.told_progress import ToldProgress
from penstock.jars import JarSet, spark_sets
from penstock.page.core.access import access_of
from penstock.processes import REPAIR_EVERY_S
from penstock.settings.snapshot import snapshot_text


def up(
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
) -> None:
    """Start the whole group: broker, topics, Spark, monitor, controller, consumers, live page.

    It starts a broker unless `kafka.bootstrap_servers` is set, and a Spark Connect server unless
    `spark.master` is set. Ctrl-C shuts everything down. State, logs and the embedded broker's data
    stay in `controller.directory`.

    `penstock recommend` is a safe first step: it only watches, and says what the group would be.
    """
    loaded = effective_settings(settings, overrides, bootstrap_server)
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    from penstock.local_group import LocalGroup  # noqa: PLC0415 -- slow: PySpark
    from penstock.local_group.start_checks import (  # noqa: PLC0415 -- slow: PySpark
        tell_if_nothing_matches,
    )

    if loaded.settings.page.enabled:
        access_of(loaded.settings.page, ())  # an address that is not safe is refused here
    embedded_broker = ("kafka", "bootstrap_servers") not in loaded.origin
    if not embedded_broker:
        tell_if_nothing_matches(loaded.settings, say)
    embedded_spark = ("spark", "master") not in loaded.origin
    needed = spark_sets(loaded.settings.spark.object_store)
    fetch_with_progress([JarSet.BROKER, *needed] if embedded_broker else needed)
    start_broker = None
    if embedded_broker:
        # A group that has its own cluster loads nothing of the laboratory.
        from penstock.laboratory.broker import small_broker  # noqa: PLC0415 -- see above

        start_broker = small_broker
    with ToldProgress() as tell:
        group = LocalGroup(
            loaded.settings,
            settings_arguments(None, overrides, bootstrap_server),
            start_broker=start_broker,
            embedded_spark=embedded_spark,
            on_progress=tell,
            snapshot=snapshot_text(loaded),
            is_stopped=stop.is_set,
            with_page=loaded.settings.page.enabled,
        )
        with group:
            tell(f"The group is up. `penstock status` shows it; logs are in {group.directory}.")
            tell("Ctrl-C stops it.")
            changes = StartingChanges(group.settings)
            while not stop.wait(REPAIR_EVERY_S):
                for line in changes.lines():
                    say(line)
                for line in group.repair():
                    say(line)
    say("Everything has stopped.")
