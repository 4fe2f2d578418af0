"""`penstock status` and `penstock history`: the group now, and what was decided and why."""

from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, data_console, print_data, whole
from penstock.cli.group_status import (
    is_stale,
    read_status,
    silence_text,
    with_ledger,
)
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.model.sentences import age_text, counted, duration_text, load_of_capacity, speed_text

BAR_WIDTH = 20
# Exit codes, for scripts.
CANNOT_TELL = 1
NOT_WELL = 9
LAST_DECISIONS = 5
MOVES_SHOWN = 8
# One colour for each topic, in the order of their names; used again when there are more topics.
_TOPIC_COLOURS = ("green", "cyan", "magenta", "blue", "yellow", "white")
# Neighbours in a bar differ, so that each partition is visible.
_BLOCKS = "█▓"


def status(
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Show the group: the controller's state, consumers with their load, moves, last decisions.

    A bar is a consumer's capacity, filled with its partitions, in one colour per topic. `behind` is
    what is written and not in the lake yet, as the consumers last reported it: in records, and as
    time of writing at the present speed.

    It counts every partition, also those that nobody reads: there the end of the log and the
    ledger in the lake say it.

    Conditions say what is not well, and why: `blind`, `unread`, `stopped`, `falling behind`, `at
    maximum`, `oversize`, `held`, `unsaved`. Exit code 0: all is well. 9: a condition holds. 1: it
    cannot be told, because there is no controller, or it is silent; what was last known is shown.

    It reads the file that the controller writes to `controller.directory` every second.

    Example: `penstock status -o json | jq .conditions`
    """
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    found = with_ledger(read_status(loaded), loaded.lake)
    if output is OutputFormat.TABLE:
        data_console().print(rendered(found))
    else:
        print_data(found, output)
    if is_stale(found):
        raise typer.Exit(CANNOT_TELL)
    if found["conditions"]:
        raise typer.Exit(NOT_WELL)


def rendered(found: dict[str, Any]) -> Group:
    """The status as a table; the demo's live view shows the same."""
    parts: list[Any] = [_headline(found), _totals(found)]
    parts += [
        Text(f"{one['condition']}: {one['reason']}", style="bold red")
        for one in found["conditions"]
    ]
    parts.append(_consumers(found))
    moves = found["moves"]
    if moves:
        shown = ", ".join(
            f"{m['partition']} {m['at'] or '-'}->{m['to'] or '-'} ({m['status']})"
            for m in moves[:MOVES_SHOWN]
        )
        more = "" if len(moves) <= MOVES_SHOWN else f" and {len(moves) - MOVES_SHOWN} more"
        parts.append(Text(f"moving {len(moves)}: {shown}{more}"))
    roll_out = found["roll_out"]
    if roll_out:
        parts.append(Text(f"rolling out version {roll_out['version']} ({roll_out['request_id']})"))
    parts.append(_decisions(found["history"][-LAST_DECISIONS:]))
    return Group(*parts)


def _headline(found: dict[str, Any]) -> Text:
    text = Text(f"{found['phase']}", style="bold")
    text.append(f"  plan {found['plan_number']}  epoch {found['controller_epoch']}", style="dim")
    age = found["measurement_age_ms"]
    speeds = "no measurement yet" if age is None else f"speeds {duration_text(age / 1000)} old"
    text.append(f"  {speeds}")
    if is_stale(found):
        text = Text(f"{silence_text(found)} ", style="bold red")
        text.append(f"What was known then ({found['phase']}):")
    elif not found["conditions"]:
        text.append("  all is well", style="green")
    return text


def _totals(found: dict[str, Any]) -> Text:
    written = speed_text(found["written_bytes_per_s"])
    partitions = counted(len(found["partitions"]), "partition")
    consumers = counted(len(found["consumers"]), "consumer")
    text = Text(
        f"{written} written to {partitions}, {consumers}, behind {_behind(found)} (records, time)"
    )
    if found["behind_unknown"]:
        unknown = counted(found["behind_unknown"], "partition")
        text.append(f", and what waits in {unknown} is unknown", style="bold red")
    return text


def _when(decision: dict[str, Any]) -> str:
    return f"{age_text(decision['age_ms'] / 1000)} ago"


def _why(decision: dict[str, Any]) -> Text:
    """The explanation, and how often it came when it is told once for many times."""
    times = decision["times"]
    if times == 1:
        return Text(decision["explanation"])
    since = age_text(decision["first_age_ms"] / 1000)
    return Text(f"{decision['explanation']} ({times} times in {since})")


def _behind(one: dict[str, Any]) -> str:
    seconds = one["behind_s"]
    at_most = "at most " if one.get("behind_is_at_most") else ""
    time = "? s" if seconds is None else duration_text(seconds)
    return f"{at_most}{one['behind_records']:,}, {time}"


def _consumers(found: dict[str, Any]) -> Table:
    topics = sorted({name.rpartition("-")[0] for name in found["partitions"]})
    colours = {
        topic: _TOPIC_COLOURS[place % len(_TOPIC_COLOURS)] for place, topic in enumerate(topics)
    }
    table = Table("id", "load", "of its capacity", "partitions", "behind", "state", box=None)
    table.columns[1].no_wrap = True
    for one in found["consumers"]:
        share = one["load_bytes_per_s"] / one["capacity_bytes_per_s"]
        figures = load_of_capacity(one["load_bytes_per_s"], one["capacity_bytes_per_s"])
        table.add_row(
            str(one["consumer"]),
            _bar(one, found["partitions"], colours),
            Text(figures, style="bold red" if share > 1 else ""),
            str(len(one["partitions"])),
            _behind(one),
            _state_text(one),
        )
    return whole(table)


def _state_text(one: dict[str, Any]) -> str:
    """A batch is nothing to mention; a wait is."""
    occupation = str(one.get("occupation", ""))
    return f"{one['status']}, {occupation}" if "waits" in occupation else str(one["status"])


def _bar(
    consumer: dict[str, Any], partitions: dict[str, dict[str, Any]], colours: dict[str, str]
) -> Text:
    """A consumer's capacity, filled with its partitions."""
    text, load, filled = Text(), 0.0, 0
    for place, name in enumerate(consumer["partitions"]):
        load += partitions.get(name, {}).get("write_speed_bytes_per_s") or 0.0
        reached = min(BAR_WIDTH, round(load / consumer["capacity_bytes_per_s"] * BAR_WIDTH))
        colour = colours.get(name.rpartition("-")[0], "white")
        text.append(_BLOCKS[place % len(_BLOCKS)] * (reached - filled), style=colour)
        filled = reached
    return text.append("·" * (BAR_WIDTH - filled), style="dim")


def _decisions(history: list[dict[str, Any]]) -> Table:
    table = Table("when", "what", "why", box=None)
    for one in history:
        table.add_row(_when(one), one["code"], _why(one))
    return whole(table)


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
            _when(one),
            one["code"],
            str(one["plan"]),
            str(one["moves"] or ""),
            speed_text(one["moved_bytes_per_s"]) if one["moves"] else "",
            _why(one),
        )
    print_data(decisions, output, table)
