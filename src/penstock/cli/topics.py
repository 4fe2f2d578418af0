"""`penstock topics`: makes and checks the four control topics."""

from typing import Annotated

import typer
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.control_topics import findings_for, make_control_topics
from penstock.topics import TopicState, control_topics

app = typer.Typer(
    help="Make and check the control topics that the group communicates over.", no_args_is_help=True
)
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
    for line in make_control_topics(loaded, highest_consumer_id=consumers):
        say(line)
    wanted = control_topics(loaded.topics, highest_consumer_id=consumers)
    unusable = [
        one
        for one in findings_for(Administration(loaded.kafka), wanted)
        if one.verdict is TopicState.UNUSABLE
    ]
    if unusable:
        raise PenstockError("; ".join(f"{one.topic} {one.explanation}" for one in unusable) + ".")
    say("All four control topics are usable.")


@app.command()
def check(
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    consumers: Consumers = 0,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Report whether each control topic is usable, and what to change if not (exit code 1)."""
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    wanted = control_topics(loaded.topics, highest_consumer_id=consumers)
    found = findings_for(Administration(loaded.kafka), wanted)
    table = Table("topic", "state", "", box=None)
    for one in found:
        table.add_row(one.topic, one.verdict, one.explanation)
    rows = [
        {"topic": one.topic, "state": str(one.verdict), "explanation": one.explanation}
        for one in found
    ]
    print_data(rows, output, table)
    if any(one.verdict is not TopicState.OK for one in found):
        raise typer.Exit(1)
