"""`penstock verify`: checks that every record of Kafka is in the lake exactly once."""

from typing import Annotated

import typer
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say, whole
from penstock.cli.lake import require_root
from penstock.cli.options import (
    BootstrapServer,
    Overrides,
    SettingsFile,
    TopicNames,
    effective_settings,
)
from penstock.verification import VerificationResult
from penstock.verification import verify as verify_lake

_COLUMNS = ("topic", "partition", "ledger", "kafka", "lake", "dead_letters")
# Shown when some partition has one: all columns together do not fit a terminal.
_COLUMNS_OF_DIFFERENCES = (
    "lost",
    "duplicated",
    "out_of_place",
    "unknown",
    "truncated",
    "changed",
    "left_out",
)


def verify(
    topic: TopicNames = None,
    offsets_only: Annotated[
        bool,
        typer.Option("--offsets-only", help="Compare only offsets: faster, content is not read."),
    ] = False,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Compare Kafka with the lake, record by record. The exit code is 0 only if they match.

    For every partition the lake knows: `kafka` is how many committed records Kafka has below the
    offset in the ledger, `lake` and `dead_letters` how many the tables have; `unknown` are rows
    whose records Kafka no longer keeps, `truncated` offsets that Kafka's log has lost at its end,
    `changed` rows whose key or value differs (`-` where the table does not have both), `left_out`
    records without a row where `lake.tables.TOPIC.rows` allows that (a filter). The table
    leaves out differences that no partition has; `-o json` has them all. It reads both by itself
    and trusts no other part of Penstock. May run while consumers do.

    Example: `penstock verify --topic orders -o json`
    """
    loaded = effective_settings(settings, overrides, bootstrap_server)
    require_root(loaded.settings.lake)
    verdict = verify_lake(loaded.settings, topic or [], offsets_only=offsets_only, on_progress=say)
    print_data(verdict.as_data(), output, _as_table(verdict))
    if not verdict.partitions:
        say("The ledger has no partition of these topics: nothing was checked.")
    for name, ids in verdict.earlier_topic_ids.items():
        say(f"{name} was deleted and made again: rows of earlier topics {', '.join(ids)} remain.")
    for name, reason in verdict.unchecked.items():
        say(f"{name} was not checked: {reason}")
    if verdict.partitions and output is OutputFormat.TABLE:
        if not offsets_only and any(one.changed is None for one in verdict.partitions):
            say("Offsets are compared; content only where a table has both key and value.")
        exact = "exact: what the ledger counts as carried is in the lake, once"
        say(exact if verdict.is_exact else "NOT exact")
    if not verdict.is_exact:
        raise typer.Exit(1)


def _as_table(verdict: VerificationResult) -> Table:
    found = [
        name
        for name in _COLUMNS_OF_DIFFERENCES
        if any(getattr(one, name) for one in verdict.partitions)
    ]
    columns = (*_COLUMNS, *found)
    table = Table(*columns, box=None)
    for one in verdict.partitions:
        values = (getattr(one, name) for name in columns)
        table.add_row(*("-" if value is None else str(value) for value in values))
    return whole(table)
