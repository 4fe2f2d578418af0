"""`penstock lake`: shows the lake's tables, compacts them, and prints their ledger."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, data_console, print_data
from penstock.cli.options import (
    BootstrapServer,
    Overrides,
    SettingsFile,
    TopicNames,
    effective_settings,
)
from penstock.cli.told_progress import ToldProgress
from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.model import TopicPartition
from penstock.model.sentences import counted, duration_text, size_text
from penstock.settings.sections import LakeSettings

if TYPE_CHECKING:
    from penstock.page.core.tables import TableHealth
    from penstock.pipeline.upkeep import UpkeepReport

app = typer.Typer(
    help="Show the lake's tables and their ledger, and compact them.", no_args_is_help=True
)
TableNames = Annotated[
    list[str] | None, typer.Option("--table", help="Only this table. May be repeated.")
]


def require_root(lake: LakeSettings) -> None:
    """Refuse a root that is no folder: there is no table in it, and probably a wrong name."""
    scheme, separator, path = lake.root.partition("://")
    if separator and scheme != "file":
        return  # an object store has no folders
    root = Path(path if separator else lake.root).expanduser().absolute()
    if root.is_dir():
        return
    problem = "is a file, not a folder" if root.exists() else "does not exist"
    raise PenstockError(
        f"The lake {root} {problem}.",
        remedy="Set lake.root, or run it in the directory where the group was started. A new group "
        "makes the folder with its first records.",
    )


@app.command()
def tables(
    settings: SettingsFile = None,
    overrides: Overrides = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Show the tables that this group writes: files, log, compaction, orphans.

    `since checkpoint` are the log entries that every reader reads beside the newest checkpoint.
    `orphans` are files that no commit names and none will; consumers remove them. To find them,
    every file of the lake is listed. What compaction did counts from the table's beginning.

    Example: `penstock lake tables -o json`
    """
    from penstock.page.process.lake_tables import read_tables  # noqa: PLC0415 -- slow: deltalake

    lake = effective_settings(settings, overrides).settings.lake
    require_root(lake)
    found = read_tables(lake, counts_orphans=True)
    if found.unreachable:
        raise PenstockError(
            f"The tables in {lake.root} cannot be read: {found.unreachable}",
            remedy="Check that it exists and may be read.",
        )
    answers = [one.answer() for one in found.tables]
    shown = Table(
        "table", "files", "size", "mean", "log entries", "since checkpoint", "orphans", box=None
    )
    for one in found.tables:
        sizes = one.file_sizes
        shown.add_row(
            one.table,
            str(len(sizes)),
            size_text(sum(sizes)),
            size_text(sum(sizes) / len(sizes)) if sizes else "-",
            str(one.log.entries),
            str(one.entries_since_checkpoint),
            str(one.orphans),
        )
    print_data(answers, output, shown)
    if output is not OutputFormat.TABLE:
        return
    for one in found.tables:
        for line in _more_about(one, found.read_unix_ms):
            data_console().print(Text(f"{one.table}: {line}"))


def _more_about(table: "TableHealth", now_unix_ms: int) -> Iterator[str]:
    """Sentences: what compaction did, how far back the log reaches, what is wrong."""
    done = table.compaction
    if done is None:
        yield "never compacted"
    else:
        ago = duration_text((now_unix_ms - done.last_unix_ms) / 1000)
        cost = duration_text(done.processor_ms / 1000)
        yield (
            f"{counted(done.files, 'file')} joined in {counted(done.joins, 'join')}, "
            f"{size_text(done.rewritten_bytes)} rewritten, {cost} of processor time; "
            f"the last {ago} ago"
        )
    at_unix_ms = table.log.oldest_checkpoint_unix_ms
    if at_unix_ms is not None:
        age = duration_text((now_unix_ms - at_unix_ms) / 1000)
        yield (
            f"the table is at version {table.version}, its newest checkpoint at "
            f"{table.checkpoint_version}, its oldest at {table.log.oldest_checkpoint_version} "
            f"({age} ago)"
        )
    yield from table.problems()


@app.command()
def compact(
    table: TableNames = None,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Join small files, remove replaced and orphaned ones, shorten the tables' logs.

    Touches only tables that this group (`lake.group`) writes. Safe while consumers and foreign
    tools write: commits, offsets and deleted rows stay as they are. Replaced files stay for the
    table's `delta.deletedFileRetentionDuration` (from `lake.removed_file_retention` when Penstock
    made the table).

    Orphans are files that a consumer wrote and never committed, because it died. `expired` are
    replaced files whose time is over, and which are now removed.

    Example: `penstock lake compact --table orders --set lake.file_size=256MiB`
    """
    from penstock.pipeline.upkeep import keep_up  # noqa: PLC0415 -- slow: PySpark

    loaded = effective_settings(settings, overrides)
    require_root(loaded.settings.lake)
    reports: list[UpkeepReport] = []
    failure: PenstockError | None = None
    with ToldProgress() as tell:
        tell.if_long("compacting")
        try:
            for report in keep_up(loaded.settings.lake, table or []):
                tell(upkeep_line(report))
                tell.if_long("compacting")
                reports.append(report)
        except PenstockError as error:
            failure = error  # what was done with the other tables is told first
    print_data([asdict(one) for one in reports], output, upkeep_table(reports))
    if failure is not None:
        raise failure


def upkeep_line(report: "UpkeepReport") -> str:
    if report.left_alone:
        return f"{report.table}: not compacted, because {report.left_alone}"
    refused = report.joins_refused
    more = f"; {counted(refused, 'join')} dropped, whose files were replaced" if refused else ""
    return f"{report.table}: compacted{more}"


def upkeep_table(reports: Sequence["UpkeepReport"]) -> Table:
    shown = Table("table", "files before", "files after", "rewritten", "orphans", "expired")
    shown.box = None
    for report in reports:
        shown.add_row(
            report.table,
            str(report.files_before),
            str(report.files_after),
            size_text(report.bytes_rewritten),
            str(report.orphans_removed),
            str(report.files_vacuumed),
        )
    return shown


@app.command()
def ledger(
    topic: TopicNames = None,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Print the next offset of every partition in the lake, beside the end of its Kafka log.

    Example: `penstock lake ledger --topic orders`
    """
    from penstock.pipeline.ledger import next_offsets  # noqa: PLC0415 -- slow: PySpark

    loaded = effective_settings(settings, overrides, bootstrap_server)
    require_root(loaded.settings.lake)
    kafka = Administration(loaded.settings.kafka)
    control = loaded.settings.topics.names.all
    names = topic or [
        name
        for name in kafka.cluster().partition_counts
        if name not in control and not name.startswith("__")
    ]
    places = {
        TopicPartition(view.name, number): view.topic_id
        for view in kafka.topics(names).values()
        for number in range(view.partitions)
    }
    offsets, ends = next_offsets(loaded.settings.lake, places), kafka.stable_offsets(places)
    shown = Table("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", box=None)
    rows = []
    for place in sorted(places):
        offset, end = offsets[place], ends.get(place)
        lag = None if offset is None or end is None else end - offset
        cells = [place.topic, place.partition, offset, end, lag]
        rows.append(dict(zip(("topic", "partition", "offset", "end", "lag"), cells, strict=True)))
        shown.add_row(*("-" if one is None else str(one) for one in cells))
    print_data(rows, output, shown)
