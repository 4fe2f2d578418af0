"""`penstock try`: what a topic's records would become, or whether a group could work at all."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from penstock.cli.console import (
    OUTPUT_OPTION,
    OutputFormat,
    data_console,
    foreign_output_to_stderr,
    print_data,
    say,
)
from penstock.cli.jars import fetch_with_progress
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.cli.quiet_spark import quiet_session
from penstock.cli.told_progress import ToldProgress
from penstock.cli.trial_of_group import calibrations, findings, show_findings
from penstock.errors import UsageError
from penstock.jars import spark_sets
from penstock.model.sentences import counted
from penstock.settings import Settings, changed_settings
from penstock.settings.sections import SparkSettings

if TYPE_CHECKING:
    from penstock.pipeline.far_times import FarTime
    from penstock.pipeline.trial import TableChange, TopicTrial

OWN_SPARK = "local[2]"
# A record's own columns: a topic without keys or headers is no mistake.
_OF_KAFKA = frozenset(
    {"key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers"}
)
_VALUE_CHARACTERS_MAX = 40


def try_topic(
    topic: Annotated[
        str | None,
        typer.Argument(help="The topic. Without one: the lake and every transformation."),
    ] = None,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, max=1000, help="How many records.")
    ] = 10,
    oldest: Annotated[
        bool, typer.Option("--oldest", help="The oldest records instead of the newest ones.")
    ] = False,
    whole_values: Annotated[
        bool,
        typer.Option("--whole", help="Show every value whole, record by record; -o json does too."),
    ] = False,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="The records as they are in Kafka, read without Spark."),
    ] = False,
    without_spark: Annotated[
        bool,
        typer.Option(
            "--without-spark", help="Without a topic: only the lake, and import transformations."
        ),
    ] = False,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Without a topic: also time batches of the largest topics, and say what one "
            "consumer carries.",
        ),
    ] = False,
    known: Annotated[
        list[str] | None, typer.Option(hidden=True, help="With --calibrate: not this topic.")
    ] = None,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Run a topic's transformation on real records: rows, types, dead letters, the table.

    Nothing is written: not to the lake, not to Kafka. What the records become goes to a temporary
    folder, by the code of the consumers. The exit code is 1 when no record would become a row, the
    table would refuse the rows, or a column has nothing but times after the year 9999; it is 3 when
    the transformation cannot be imported.

    Without a topic it tries what `penstock up` tries before it starts anything: the lake (a file is
    written, committed, read back and deleted, in a folder of its own) and every transformation of
    the settings on a few records. With `--calibrate`, some megabytes of the largest topics are
    carried into that folder too and timed.

    Examples:
    `penstock try orders`

    `penstock try orders --raw -n 1 --whole`

    `penstock try orders --oldest -n 50 --set lake.tables='{"orders": {"transformation": "a:b"}}'`

    """
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    if topic is None:
        found = findings(loaded, without_spark=without_spark)
        is_well = all(one.error is None for one in found)
        times = calibrate and is_well and not without_spark
        timed = calibrations(loaded, frozenset(known or ())) if times else []
        show_findings(found, timed, output)
        return
    if without_spark:
        raise UsageError("--without-spark does not try a topic.")
    if raw:
        trial = _raw(changed_settings(loaded, {"lake.tables": {}}), topic, count, is_oldest=oldest)
    else:
        trial = _tried(loaded, topic, count, is_oldest=oldest)
    if output is OutputFormat.TABLE:
        show(trial, is_oldest=oldest, is_whole=whole_values)
    else:
        print_data(_as_data(trial), output)
    is_refused = trial.change is not None and trial.change.refusal is not None
    if trial.refuses_everything or is_refused or (not raw and _far_columns(trial)):
        raise typer.Exit(1)


def _raw(settings: Settings, topic: str, count: int, *, is_oldest: bool) -> "TopicTrial":
    # PySpark and deltalake are slow to import.
    from penstock.pipeline.raw_records import raw_records  # noqa: PLC0415 -- see above
    from penstock.pipeline.trial import require_topic  # noqa: PLC0415 -- see above

    require_topic(settings, topic)
    with ToldProgress(f"reading records of {topic}"):
        return raw_records(settings, topic, count=count, is_oldest=is_oldest)


def _tried(settings: Settings, topic: str, count: int, *, is_oldest: bool) -> "TopicTrial":
    # PySpark and deltalake are slow to import.
    from penstock.pipeline.trial import require_topic  # noqa: PLC0415 -- see above
    from penstock.pipeline.trial import try_topic as tried  # noqa: PLC0415 -- see above

    require_topic(settings, topic)
    spark = _spark_here(settings.spark)
    if not spark.uses_connect_server:
        fetch_with_progress(spark_sets(spark.object_store))
    with foreign_output_to_stderr(), ToldProgress("starting Spark") as tell:
        session = quiet_session(spark)
        try:
            with tempfile.TemporaryDirectory(prefix="penstock-try-") as folder:
                return tried(
                    settings,
                    session,
                    topic,
                    Path(folder),
                    count=count,
                    is_oldest=is_oldest,
                    on_progress=tell,
                )
        finally:
            session.stop()


def _spark_here(spark: SparkSettings) -> SparkSettings:
    """A Spark that sees this machine's folders: a Connect server here, or one in this process."""
    if spark.server_port is not None:
        return spark
    return spark.model_copy(update={"master": OWN_SPARK})


def _as_data(trial: "TopicTrial") -> dict[str, Any]:
    change = trial.change
    return {
        "topic": trial.topic,
        "records": trial.records,
        "partitions": trial.partitions,
        "rows": [_readable(row) for row in trial.rows],
        "schema": dict(trial.schema),
        "dead_letters": [_readable(row) for row in trial.dead_letters],
        "failures": [
            {"partition": str(place), "explanation": error.message, "remedy": error.remedy}
            for place, error in trial.failures.items()
        ],
        "table": None
        if change is None
        else {
            "name": change.table,
            "exists": change.exists,
            "columns_added": list(change.columns_added),
            "refusal": None if change.refusal is None else str(change.refusal),
        },
    }


def _readable(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _text_of(value) for name, value in row.items()}


def _text_of(value: Any) -> Any:
    """Bytes as text if they are that, else as hexadecimal digits; also inside of lists."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return f"0x{value.hex()}"
    if isinstance(value, list):
        return [_text_of(one) for one in value]
    return _readable(value) if isinstance(value, dict) else value


def show(trial: "TopicTrial", *, is_oldest: bool, is_whole: bool = False) -> None:
    """For a person: the rows as a table if they fit, else one after the other."""
    console = data_console()
    which = "oldest" if is_oldest else "newest"
    if trial.records:
        say(f"{trial.records} of the {which} records of {trial.topic}:")
    else:
        say(f"{trial.topic} has no records; these are the columns that they would have:")
    names = list(trial.schema)
    width = sum(
        2 + max(len(name), len(kind), *(len(_text(row.get(name))) for row in trial.rows))
        for name, kind in trial.schema.items()
    )
    if trial.rows and (is_whole or width > console.width):
        _show_one_by_one(console, "row", trial.rows, trial.schema, is_whole=is_whole)
    else:
        heads = (f"{escape(n)}\n[dim]{escape(t)}[/]" for n, t in trial.schema.items())
        rows = Table(*heads, box=None)
        for row in trial.rows:
            rows.add_row(*(_cell(row.get(name)) for name in names))
        console.print(rows)
    shown = dict.fromkeys(("partition", "offset", "reason", "value"), "")
    if trial.dead_letters and is_whole:
        _show_one_by_one(console, "dead letter", trial.dead_letters, shown, is_whole=True)
    elif trial.dead_letters:
        letters = Table("partition", "offset", "dead letter because", "value", box=None)
        for row in trial.dead_letters:
            letters.add_row(*(_cell(row[name]) for name in shown))
        console.print(letters)
    cells = [row.get(name) for row in trial.rows for name in names]
    cells += [row[name] for row in trial.dead_letters for name in shown]
    if not is_whole and any(_cell(one) != _cell(one, is_whole=True) for one in cells):
        say(
            f"Values are cut after {_VALUE_CHARACTERS_MAX} characters; --whole (or -o json) shows "
            "them whole."
        )
    if trial.change is None:
        return
    if trial.rows and not trial.dead_letters:
        say("No record would be a dead letter.")
    _say_what_is_odd(trial)
    say(_change_said(trial, trial.change))


def _say_what_is_odd(trial: "TopicTrial") -> None:
    for place, error in trial.failures.items():
        say(f"{place} would stop: {error}")
    if trial.dead_letters and not trial.rows:
        some = counted(trial.records, "record")
        say(f"None of {some} would become a row. Are the names and types of the fields right?")
    for name, when in _far_columns(trial).items():
        say(
            f"Every time in {name} is {when} or so, which readers in Python cannot show. Are they "
            "milliseconds? timestamp_millis reads those."
        )
    if empty := always_null(trial):
        say(f"Null in every row: {', '.join(empty)}. Are these names and types in your records?")


def _far_columns(trial: "TopicTrial") -> "Mapping[str, FarTime]":
    from penstock.pipeline.far_times import far_columns  # noqa: PLC0415 -- slow: pyarrow

    return far_columns(trial.rows)


def always_null(trial: "TopicTrial") -> list[str]:
    """Columns of the transformation without any value: mostly a name that is not in the records."""
    return [
        name
        for name in trial.schema
        if trial.rows and name not in _OF_KAFKA and all(row.get(name) is None for row in trial.rows)
    ]


def _show_one_by_one(
    console: Console,
    what: str,
    rows: Sequence[Mapping[str, Any]],
    schema: Mapping[str, str],
    *,
    is_whole: bool,
) -> None:
    """One line for each value: for rows that are wider than the terminal. Types come once."""
    if any(schema.values()):
        _print_lines(console, "types", schema)
    for number, row in enumerate(rows, start=1):
        values = {name: _text(row.get(name), is_whole=is_whole) for name in schema}
        _print_lines(console, f"{what} {number}", values)


def _print_lines(console: Console, title: str, values: Mapping[str, str]) -> None:
    table = Table(box=None, show_header=False, title=title, title_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in values.items():
        table.add_row(escape(name), escape(text))
    console.print(table)


def _text(value: Any, *, is_whole: bool = False) -> str:
    text = "null" if value is None else str(_text_of(value))
    is_short = is_whole or len(text) <= _VALUE_CHARACTERS_MAX
    return text if is_short else text[:_VALUE_CHARACTERS_MAX] + "..."


def _cell(value: Any, *, is_whole: bool = False) -> str:
    return escape(_text(value, is_whole=is_whole))


def _change_said(trial: "TopicTrial", change: "TableChange") -> str:
    columns = ", ".join(f"{name} {trial.schema[name]}" for name in change.columns_added)
    if change.refusal is not None:
        return f"The table would refuse these rows: {change.refusal}"
    if not change.exists:
        return f"The table {change.table} would be made, with {columns}."
    if change.columns_added:
        return f"The table {change.table} would get the new columns {columns}."
    return f"The table {change.table} exists and would not change."
