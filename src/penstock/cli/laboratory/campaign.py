"""`penstock campaign`: a live group under random faults; its records are counted twice."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.cli.jars import fetch_with_progress
from penstock.cli.options import Overrides, named_values
from penstock.errors import PenstockError, UsageError
from penstock.jars import USUAL_SETS
from penstock.settings import load_settings
from penstock.settings.units import parse_duration


def campaign(
    seed: Annotated[int, typer.Option(help="The same seed gives the same faults.")] = 1,
    minutes: Annotated[float, typer.Option(min=0.25, help="How long the group is harmed.")] = 3.0,
    fault_every: Annotated[
        str, typer.Option(metavar="DURATION", help="How often a fault comes, on average.")
    ] = "10s",
    busy: Annotated[
        int, typer.Option(min=0, metavar="N", help="Busy processes beside the group.")
    ] = 0,
    records_per_s: Annotated[
        float, typer.Option(min=1, help="How many records are written, in all.")
    ] = 3500,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the picture and the figures are written.")
    ] = Path("out/campaign"),
    overrides: Overrides = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Harm a live group at random for some minutes, then count its records twice.

    It starts a broker, a Spark server and a group on this machine. Consumers, controller, monitor,
    Spark and broker are killed, ended and paused; partitions are added, topics made and deleted.
    Keyed, compressed and transactional producers write meanwhile. The exit code is 0 only if every
    record is in the lake exactly once.

    Example: `penstock campaign --seed 7 --minutes 5 --busy 2 -o json`
    """
    # Imported late: Spark and the drawing library are slow to import.
    from penstock.laboratory.campaign.observed import CampaignPlan  # noqa: PLC0415 -- slow
    from penstock.laboratory.campaign.picture import draw  # noqa: PLC0415 -- slow
    from penstock.laboratory.campaign.report import (  # noqa: PLC0415 -- slow
        report_data,
        report_rows,
        reported,
    )
    from penstock.laboratory.campaign.run import Campaign  # noqa: PLC0415 -- slow

    plan = CampaignPlan(seed, minutes, _seconds(fault_every), busy, records_per_s)
    fetch_with_progress(list(USUAL_SETS))
    out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="penstock-campaign-"))
    chosen = {**campaign_settings(folder), **named_values(overrides)}
    flags = [text for name, value in chosen.items() for text in ("--set", f"{name}={value}")]
    settings = load_settings(flags=chosen, environment={}).settings
    name = f"seed-{seed}"
    with Campaign(plan, settings, flags=flags, say=say) as running:
        run = running.run()
        check = running.check()
    logs = _kept_logs(folder / "group", out / f"{name}-logs")
    report = reported(run, check, settings.controller.spare_consumers)
    data = report_data(plan, run, check, report)
    (out / f"{name}.json").write_text(json.dumps(data, indent=1, default=str), encoding="utf-8")
    draw(run, f"Campaign with seed {seed}: {report.faults} faults", out / f"{name}.png")
    table = Table("", "", box=None, show_header=False)
    for row in report_rows(report).items():
        table.add_row(*row)
    print_data(data, output, table)
    for line in [*report.fenced_unharmed, *run.not_injected]:
        say(line)
    say(f"picture: {out / f'{name}.png'}, figures: {out / f'{name}.json'}, logs: {logs}")
    if not report.is_successful:
        raise PenstockError(
            f"The campaign with seed {seed} failed: {report.lost} records lost, "
            f"{report.doubled} doubled{'' if report.has_drained else ', not drained'}, "
            f"{len(report.fenced_unharmed)} unharmed consumers told to end.",
            remedy=f"Logs and lake: {folder}",
        )
    shutil.rmtree(folder)  # kept after a failure


def _kept_logs(group: Path, where: Path) -> Path:
    """The logs of all processes, under one name each."""
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    for pattern in ("*.log", "consumer-*/*.log", "spark/*.log", "broker/*/*.log"):
        for log in group.glob(pattern):
            shutil.copyfile(log, where / "-".join(log.relative_to(group).parts))
    return where


def campaign_settings(folder: Path) -> dict[str, str]:
    """Consumers so small that a laptop needs several; everything else is as by default."""
    return {
        "controller.directory": str(folder / "group"),
        "lake.root": str(folder / "lake"),
        "lake.log_retention": "1d",  # the times of all commits are read from the log
        "packing.capacity": "300kB/s",
        "spark.server_memory": "1GiB",
    }


def _seconds(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{error}.") from error
