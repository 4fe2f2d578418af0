"""`penstock lake`: compacts the lake's tables and prints their ledger."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data
from penstock.cli.going_on import GoingOn
from penstock.cli.options import (
    BootstrapServer,
    Overrides,
    SettingsFile,
    TopicNames,
    effective_settings,
)
from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.model import TopicPartition
from penstock.model.sentences import counted, size_text
from penstock.settings.sections import LakeSettings

if TYPE_CHECKING:
    from penstock.pipeline.upkeep import UpkeepReport

app = typer.Typer(help="Compact the lake's tables and show their ledger.", no_args_is_help=True)
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
    with GoingOn() as tell:
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
