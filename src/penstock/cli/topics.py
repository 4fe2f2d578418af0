"""`penstock topics`: makes and checks the control topics."""

import time
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.control_topics import (
    findings_for,
    make_control_topics,
    needed_topics,
    optional_findings,
)
from penstock.topics import TopicState
from penstock.topics.control_topics import ControlTopic, TopicFinding

app = typer.Typer(
    help="Make and check the control topics that the group communicates over.", no_args_is_help=True
)
VISIBLE_PAUSE_S = 0.2
Consumers = Annotated[
    int,
    typer.Option(
        "--consumers", min=0, help="The highest consumer id that must already have a mailbox."
    ),
]


@app.command()
def create(
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    consumers: Consumers = 0,
) -> None:
    """Make the control topics, or grow them. Safe to repeat; nothing is shrunk or deleted."""
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    done = make_control_topics(loaded, highest_consumer_id=consumers)
    for line in done:
        say(line)
    wanted = needed_topics(loaded, highest_consumer_id=consumers)
    found = _once_visible(Administration(loaded.kafka), wanted, loaded.kafka.answer_timeout)
    unusable = [one for one in found if one.verdict is not TopicState.OK]
    if unusable:
        raise PenstockError("; ".join(f"{one.topic} {one.explanation}" for one in unusable) + ".")
    optional = optional_findings(Administration(loaded.kafka), loaded)
    lacking = [one for one in optional if one.verdict is not TopicState.OK]
    for one in lacking:
        if not any(line.startswith(f"{one.topic}: ") for line in done):
            say(f"{one.topic} {one.explanation}. Until it is usable each consumer commits alone.")
    needed = " that are needed" if lacking else ""
    say(f"All control topics{needed} are usable.")


def _once_visible(
    administration: Administration, wanted: tuple[ControlTopic, ...], within_s: float
) -> list[TopicFinding]:
    """What the cluster has: brokers learn of a new topic a moment after it was made."""
    deadline_s = time.monotonic() + within_s
    while True:
        found = findings_for(administration, wanted)
        states = {one.verdict for one in found}
        if not states & {TopicState.MISSING, TopicState.TOO_FEW_PARTITIONS}:
            return found
        if time.monotonic() >= deadline_s:
            return found
        time.sleep(VISIBLE_PAUSE_S)  # brokers do not announce that they know it


@app.command()
def check(
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    consumers: Consumers = 0,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Report whether each control topic is usable, and what to change if not (exit code 1).

    The topic <prefix>-commit does not count where lake.commits is auto: it is used if it is there.
    """
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    wanted = needed_topics(loaded, highest_consumer_id=consumers)
    administration = Administration(loaded.kafka)
    found = findings_for(administration, wanted)
    optional = optional_findings(administration, loaded)
    table = Table("topic", "state", "", box=None)
    for one in (*found, *optional):
        table.add_row(one.topic, one.verdict, Text(one.explanation))
    rows = [
        {"topic": one.topic, "state": str(one.verdict), "explanation": one.explanation}
        for one in (*found, *optional)
    ]
    print_data(rows, output, table)
    if any(one.verdict is not TopicState.OK for one in found):
        raise typer.Exit(1)
