"""`penstock try` without a topic: whether a group could work, and what one consumer carries."""

from functools import partial
from typing import TYPE_CHECKING

import typer
from rich.markup import escape
from rich.table import Table

from penstock.cli.console import OutputFormat, foreign_output_to_stderr, print_data
from penstock.cli.quiet_spark import quiet_session
from penstock.cli.told_progress import ToldProgress
from penstock.errors import PenstockError
from penstock.monitor.core.partitions_of_interest import TopicsOfInterest
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.pipeline.calibration import Calibration
    from penstock.pipeline.trial import Finding


def findings(settings: Settings, *, without_spark: bool) -> "list[Finding]":
    """What `up` and the controller want to know before consumers start."""
    from penstock.pipeline.trial import try_out  # noqa: PLC0415 -- slow: PySpark

    with foreign_output_to_stderr(), ToldProgress() as tell:
        session = None if without_spark else partial(quiet_session, settings.spark)
        return list(try_out(settings, session, tell))


def calibrations(settings: Settings, known: frozenset[str]) -> "list[Calibration]":
    """What could not be timed is measured later: it holds nothing up."""
    from penstock.pipeline.calibration import Calibration, calibrated  # noqa: PLC0415 -- PySpark

    interest = TopicsOfInterest.from_settings(settings.monitor, settings.topics)
    with foreign_output_to_stderr(), ToldProgress() as tell:
        try:
            return list(
                calibrated(
                    settings,
                    partial(quiet_session, settings.spark),
                    lambda name: name not in known and interest.includes(name, is_internal=False),
                    tell,
                )
            )
        except PenstockError as error:
            return [Calibration("", None, f"nothing was timed: {error.message}")]


def show_findings(found: "list[Finding]", timed: "list[Calibration]", output: OutputFormat) -> None:
    table = Table("", "check", "", box=None, show_header=False)
    rows = []
    for one in found:
        remedy = "" if one.error is None else one.error.remedy
        mark = "[green]ok[/]" if one.error is None else "[red]!![/]"
        mark = "[yellow]??[/]" if one.is_doubtful else mark
        table.add_row(mark, one.name, escape(f"{one.explanation} {remedy}".rstrip()))
        code = 0 if one.error is None else one.error.exit_code
        rows.append(
            {
                "check": one.name,
                "ok": one.error is None,
                "explanation": one.explanation,
                "remedy": remedy,
                "exit_code": code,
                "is_doubtful": one.is_doubtful,
                "stops_some": one.stops_some,
            }
        )
    for one_timed in timed:
        name = f"capacity of {one_timed.topic}".removesuffix(" of ")
        table.add_row("[green]ok[/]", name, escape(one_timed.explanation))
        rows.append(
            {
                "check": name,
                "ok": True,
                "explanation": one_timed.explanation,
                "remedy": "",
                "exit_code": 0,
                "is_doubtful": False,
                "topic": one_timed.topic,
                "bytes_per_s": one_timed.bytes_per_s,
                "is_at_least": one_timed.is_at_least,
            }
        )
    print_data(rows, output, table)
    wrong = [one.error.exit_code for one in found if one.error is not None]
    if wrong:
        raise typer.Exit(wrong[0])
