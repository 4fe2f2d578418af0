"""`penstock topics`: makes and checks the four control topics."""

from typing import Annotated

import typer
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.settings import Settings
from penstock.topics import ControlTopic, Finding, SeenTopic, Verdict, compare, control_topics

app = typer.Typer(
    help="Make and check the control topics over which the group talks.", no_args_is_help=True
)
Consumers = Annotated[
    int,
    typer.Option(
        "--consumers", min=0, help="The highest consumer id that must have a mailbox already."
    ),
]


def findings_for(administration: Administration, wanted: tuple[ControlTopic, ...]) -> list[Finding]:
    """What the cluster has, held against what is wanted."""
    names = [topic.name for topic in wanted]
    views = administration.topics(names)
    settings = administration.topic_settings(views)
    found: list[Finding] = []
    for topic in wanted:
        view = views.get(topic.name)
        seen = None if view is None else SeenTopic(view.partitions, settings[topic.name])
        found += compare(topic, seen)
    return found


def make_control_topics(settings: Settings, *, highest_consumer_id: int = 0) -> list[str]:
    """Create what is missing, grow what is too small; says what was done. Safe to repeat."""
    administration = Administration(settings.kafka)
    wanted = control_topics(settings.topics, highest_consumer_id=highest_consumer_id)
    done = []
    verdicts = {(one.topic, one.verdict) for one in findings_for(administration, wanted)}
    for topic in wanted:
        if (topic.name, Verdict.MISSING) in verdicts:
            made = administration.create_topic(
                topic.name,
                partitions=topic.partitions,
                replication_factor=settings.topics.replication_factor,
                settings=topic.settings,
            )
            if made:
                done.append(f"{topic.name}: created with {topic.partitions} partitions")
        elif (topic.name, Verdict.TOO_FEW_PARTITIONS) in verdicts:
            administration.grow_topic(topic.name, topic.partitions)
            done.append(f"{topic.name}: grown to {topic.partitions} partitions")
    return done


@app.command()
def create(
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    consumers: Consumers = 0,
) -> None:
    """Make the control topics, or grow them. Safe to repeat; never shrinks or deletes."""
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    for line in make_control_topics(loaded, highest_consumer_id=consumers):
        say(line)
    wanted = control_topics(loaded.topics, highest_consumer_id=consumers)
    unusable = [
        one
        for one in findings_for(Administration(loaded.kafka), wanted)
        if one.verdict is Verdict.UNUSABLE
    ]
    if unusable:
        raise PenstockError("; ".join(f"{one.topic} {one.words}" for one in unusable) + ".")
    say("All four control topics can serve.")


@app.command()
def check(
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    consumers: Consumers = 0,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Say of each control topic whether it can serve, and what to change if not (exit code 1)."""
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    wanted = control_topics(loaded.topics, highest_consumer_id=consumers)
    found = findings_for(Administration(loaded.kafka), wanted)
    table = Table("topic", "state", "", box=None)
    for one in found:
        table.add_row(one.topic, one.verdict, one.words)
    rows = [{"topic": one.topic, "state": str(one.verdict), "words": one.words} for one in found]
    print_data(rows, output, table)
    if any(one.verdict is not Verdict.OK for one in found):
        raise typer.Exit(1)
