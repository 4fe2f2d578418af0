"""`penstock study consumer`: measures what the speed of one consumer depends on."""

import os
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.cli.jars import fetch_with_progress
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.cli.speeds import duration_of
from penstock.errors import UsageError
from penstock.jars import JarSet
from penstock.laboratory.broker import EmbeddedKafka
from penstock.model.sentences import speed_text
from penstock.settings import LoadedSettings, Settings, changed_settings
from penstock.settings.sections import SparkSettings
from penstock.settings.units import parse_bytes

QUICK_BYTES, FULL_BYTES = "60MB", "300MB"
# The options that have an effect only without a topic of one's own, and only with one. The study of
# all cases has a broker, a lake and settings of its own.
_OF_ALL_CASES = {
    "directory": "--directory",
    "quick": "--quick",
    "runs": "--runs",
    "size": "--size",
    "only": "--only",
}
_OF_ONE_TOPIC = {
    "transformation": "--transformation",
    "lasting": "--for",
    "settings_file": "--settings",
    "overrides": "--set",
    "bootstrap_server": "--bootstrap-server",
}


def consumer(
    context: typer.Context,
    directory: Annotated[
        Path, typer.Option("--directory", "-d", help="Where the report and the pictures go.")
    ] = Path("out/study-consumer"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer cases and less data: about ten minutes.")
    ] = False,
    runs: Annotated[int, typer.Option(min=1, max=20, help="Runs of each case.")] = 1,
    size: Annotated[
        str | None,
        typer.Option(help=f"Data of each case: {FULL_BYTES}, or {QUICK_BYTES} if quick."),
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Only questions whose name contains this text.")
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(help="Measure this topic of your own Kafka instead, and nothing else."),
    ] = None,
    transformation: Annotated[
        str | None, typer.Option(help="With --topic: another one than that of the settings.")
    ] = None,
    lasting: Annotated[
        str, typer.Option("--for", help="With --topic: how long at most, from its begin.")
    ] = "60s",
    settings_file: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Measure the speed of one consumer while varying one thing at a time, or of one topic.

    It varies the partitions of a topic, the number of topics, record size, compression, batch time,
    and where Spark runs. It starts its own broker and Spark Connect server, fills topics, and lets
    `penstock consumer` drain them. It writes `consumer.md` and pictures.

    With `--topic` one consumer alone carries that topic of your own Kafka, with the transformation
    of your settings or another, into a corner of your lake that is removed again, and the answer is
    what it carries. Control topics with a prefix of their own are made and deleted.

    Examples:
    `penstock study consumer --quick`

    `penstock study consumer --topic orders --transformation shop:decode`

    `penstock study consumer --runs 3 --directory docs/development/studies`

    """
    _refuse_without_effect(context, has_topic=topic is not None)
    if topic is not None:
        loaded = effective_settings(settings_file, overrides, bootstrap_server)
        _own_topic(loaded, topic, transformation, duration_of("--for", lasting), output)
        return
    # Imported late: Spark is slow to import, and `penstock --help` must not wait for it.
    from penstock.laboratory.studies.consumer.drain import Filled, Filling, drain, fill  # noqa: PLC0415 -- see above
    from penstock.laboratory.studies.consumer.page import StudyFinding, draw, page_text  # noqa: PLC0415 -- see above
    from penstock.laboratory.studies.consumer.questions import LOCAL, cases  # noqa: PLC0415 -- see above
    from penstock.pipeline.connect_server import ConnectServer  # noqa: PLC0415 -- see above

    chosen = cases(_bytes(size or (QUICK_BYTES if quick else FULL_BYTES)), quick=quick)
    chosen = [one for one in chosen if only is None or only in one.question]
    if not chosen:
        raise UsageError(f"No question of the study contains {only!r}.")
    directory.mkdir(parents=True, exist_ok=True)
    fetch_with_progress([JarSet.BROKER, JarSet.SPARK])
    findings: list[StudyFinding] = []
    with EmbeddedKafka() as kafka, ConnectServer(SparkSettings()) as server:
        filled: dict[Filling, Filled] = {}
        for number, case in enumerate(chosen, start=1):
            if case.filling not in filled:
                filled[case.filling] = fill(kafka.settings, case.filling)
            master = "local[2]" if case.mode == LOCAL else server.master
            settings = Settings(kafka=kafka.settings, spark=SparkSettings(master=master))
            done = [drain(settings, filled[case.filling], **case.consumer) for _ in range(runs)]
            findings.append(StudyFinding(case, tuple(done)))
            say(
                f"{number} of {len(chosen)}: {case.question}, {case.label}: "
                f"{findings[-1].decoded_mb_per_s:.1f} MB/s"
            )
            # Written after every case, so that an interrupted study keeps its results.
            page = directory / "consumer.md"
            text = page_text(
                findings, runs=runs, cores=os.cpu_count() or 1, load=os.getloadavg()[1]
            )
            page.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
            draw(findings, directory / "consumer")
    say(f"wrote {directory / 'consumer.md'}")
    print_data(_rows(findings), output, _table(findings))


def _refuse_without_effect(context: typer.Context, *, has_topic: bool) -> None:
    """An option that is taken and does nothing would be believed."""
    given = {
        name
        for name in context.params
        if (source := context.get_parameter_source(name)) is not None
        and source.name == "COMMANDLINE"
    }
    for name, option in (_OF_ALL_CASES if has_topic else _OF_ONE_TOPIC).items():
        if name in given:
            how = "has no effect with --topic" if has_topic else "needs --topic"
            raise UsageError(f"{option} {how}.")


def _own_topic(
    loaded: LoadedSettings,
    topic: str,
    transformation: str | None,
    seconds_max: float,
    output: OutputFormat,
) -> None:
    """As in a group that `penstock up` starts: without a Spark of its own it starts a server."""
    from penstock.laboratory.studies.consumer.own_topic import study_topic  # noqa: PLC0415 -- Spark
    from penstock.pipeline.connect_server import ConnectServer  # noqa: PLC0415 -- slow: PySpark
    from penstock.pipeline.trial import require_topic  # noqa: PLC0415 -- slow: PySpark

    settings = loaded.settings
    if transformation is not None:
        table = settings.lake.table_of(topic).model_dump() | {"transformation": transformation}
        tables = {name: one.model_dump() for name, one in settings.lake.tables.items()}
        settings = changed_settings(settings, {"lake.tables": {**tables, topic: table}})
    require_topic(settings, topic)
    with ExitStack() as parts:
        if ("spark", "master") not in loaded.origin:
            fetch_with_progress([JarSet.SPARK])
            server = parts.enter_context(ConnectServer(settings.spark))
            spark = settings.spark.model_copy(update={"master": server.master})
            settings = settings.model_copy(update={"spark": spark})
        found = study_topic(
            settings, topic, seconds_max=seconds_max, secret_files=loaded.secret_files
        )
    least = "at least " if found.at_least else ""
    say(
        f"One consumer carries {least}{speed_text(found.log_bytes_per_s)} of {topic} (bytes of the "
        f"broker's log; {speed_text(found.lowest_bytes_per_s)} to "
        f"{speed_text(found.highest_bytes_per_s)} on the way): {found.records:,} records in "
        f"{found.seconds:.0f} s."
    )
    if output is not OutputFormat.TABLE:
        print_data(asdict(found), output)


def _bytes(text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise UsageError(f"{error}.") from error


def _rows(findings: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            "question": one.case.question,
            "case": one.case.label,
            "decoded_mb_per_s": one.decoded_mb_per_s,
            "runs": [asdict(run) for run in one.runs],
        }
        for one in findings
    ]


def _table(findings: list[Any]) -> Table:
    table = Table("question", "case", "MB/s", "spread", box=None)
    for one in findings:
        table.add_row(
            one.case.question,
            one.case.label,
            f"{one.decoded_mb_per_s:.1f}",
            f"{one.spread:.2f}",
        )
    return table
