"""`penstock verify`: checks that every record of Kafka is in the lake exactly once."""

import typer
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.cli.options import (
    BootstrapServer,
    Overrides,
    SettingsFile,
    TopicNames,
    effective_settings,
)
from penstock.verification import VerificationResult
from penstock.verification import verify as verify_lake

_COLUMNS = (
    "topic",
    "partition",
    "ledger",
    "kafka",
    "lake",
    "dead_letters",
    "lost",
    "duplicated",
    "out_of_place",
    "unknown",
)


def verify(
    topic: TopicNames = None,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Compare Kafka with the lake, record by record. The exit code is 0 only if they match.

    For every partition in the ledger, `kafka` counts the committed records in Kafka below the
    ledger's offset, and `lake` and `dead_letters` count the rows in the tables; `unknown` counts
    rows whose records Kafka no longer keeps. It shares no code with the pipeline and may run while
    consumers do.

    Example: `penstock verify --topic orders -o json`
    """
    loaded = effective_settings(settings, overrides, bootstrap_server)
    verdict = verify_lake(loaded.settings, topic or [], on_progress=say)
    print_data(verdict.as_data(), output, _as_table(verdict))
    if not verdict.partitions:
        say("Nothing was checked: the ledger has no partition of these topics.")
    elif output is OutputFormat.TABLE:
        say("exact" if verdict.is_exact else "NOT exact")
    if not verdict.is_exact:
        raise typer.Exit(1)


def _as_table(verdict: VerificationResult) -> Table:
    table = Table(*_COLUMNS, box=None)
    for one in verdict.partitions:
        table.add_row(*(str(getattr(one, name)) for name in _COLUMNS))
    return table
