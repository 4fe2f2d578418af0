"""`penstock status` and `penstock history`: the group as it is, and what was decided and why."""

from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, data_console, print_data
from penstock.cli.group_status import is_stale, read_status
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.settings.units import format_speed

BAR_WIDTH = 30
LAST_DECISIONS = 5


def status(
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Show the group: the controller's state, consumers with their load, moves, last decisions.

    Reads what the controller writes every second to `controller.directory`. Exit code 1 when it has
    stopped writing.
    """
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    found = read_status(loaded)
    if output is OutputFormat.TABLE:
        data_console().print(rendered(found))
    else:
        print_data(found, output)
    if is_stale(found):
        raise typer.Exit(1)


def rendered(found: dict[str, Any]) -> Group:
    """For people's eyes; the demo's live view shows the same."""
    parts: list[Any] = [_headline(found), _consumers(found)]
    moves = found["moves"]
    if moves:
        shown = ", ".join(f"{m['partition']} {m['at'] or '-'}->{m['to'] or '-'}" for m in moves[:8])
        parts.append(Text(f"moving {len(moves)}: {shown}"))
    parts += [
        Text(f"stopped: {partition}: {reason}", style="red")
        for partition, reason in list(found["parked"].items())[:5]
    ]
    parts += [
        Text(f"paused ({pause['direction']}): {pause['reason']}", style="yellow")
        for pause in found["pauses"]
    ]
    roll_out = found["roll_out"]
    if roll_out:
        parts.append(Text(f"rolling out version {roll_out['version']} ({roll_out['request_id']})"))
    parts.append(_decisions(found["history"][-LAST_DECISIONS:]))
    return Group(*parts)


def _headline(found: dict[str, Any]) -> Text:
    text = Text(f"{found['phase']}", style="bold")
    text.append(f"  plan {found['plan_number']}  epoch {found['controller_epoch']}", style="dim")
    age = found["measurement_age_ms"]
    speeds = "no measurement yet" if age is None else f"speeds {age / 1000:.1f} s old"
    text.append(f"  {speeds}")
    if is_stale(found):
        text.append(f"  the controller is silent for {found['age_s']:.0f} s", style="bold red")
    if found["is_degraded"]:
        text.append("  its state cannot be saved", style="bold red")
    return text


def _consumers(found: dict[str, Any]) -> Table:
    table = Table("consumer", "load", "", "partitions", "behind", "state", box=None)
    for one in found["consumers"]:
        table.add_row(
            str(one["consumer"]),
            bar(one["load_bytes_per_s"], one["capacity_bytes_per_s"]),
            f"{one['load_bytes_per_s'] / 1e6:.2f} of {one['capacity_bytes_per_s'] / 1e6:.2f} MB/s",
            str(len(one["partitions"])),
            f"{one['behind_bytes'] / 1e6:.1f} MB",
            one["status"],
        )
    return table


def bar(load: float, capacity: float) -> Text:
    share = load / capacity if capacity else 0.0
    filled = min(BAR_WIDTH, round(share * BAR_WIDTH))
    style = "red" if share > 1 else "yellow" if share > 0.9 else "green"
    return Text("█" * filled, style=style).append("·" * (BAR_WIDTH - filled), style="dim")


def _decisions(history: list[dict[str, Any]]) -> Table:
    table = Table("when", "what", "why", box=None)
    for one in history:
        table.add_row(f"{one['age_ms'] / 1000:.0f} s ago", one["code"], Text(one["words"]))
    return table


def history(
    last: Annotated[int, typer.Option(min=1, help="How many, newest last.")] = 50,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Show what the controller decided, why, and what it moved."""
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    decisions = read_status(loaded)["history"][-last:]
    table = Table("when", "what", "plan", "moves", "cost", "why", box=None)
    for one in decisions:
        table.add_row(
            f"{one['age_ms'] / 1000:.0f} s ago",
            one["code"],
            str(one["plan"]),
            str(one["moves"] or ""),
            format_speed(round(one["moved_bytes_per_s"])) if one["moves"] else "",
            Text(one["words"]),
        )
    print_data(decisions, output, table)
