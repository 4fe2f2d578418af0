"""`penstock status` and `penstock history`: the group now, and what was decided and why."""

from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, data_console, print_data, whole
from penstock.cli.consumer_bar import consumer_bar, share_of_capacity, topic_colours
from penstock.cli.group_status import is_stale, read_status, with_ledger
from penstock.cli.live_view import headline, seen_text
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.controller.core.capacity_text import capacity_text
from penstock.controller.core.told_status import backlog_text, doing_text, plain_text
from penstock.model.sentences import age_text, counted, duration_text, load_of_capacity, speed_text

BAR_WIDTH = 20
# Exit codes, for scripts.
CANNOT_TELL = 1
NOT_WELL = 9
LAST_DECISIONS = 5
MOVES_SHOWN = 8


def status(
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep looking, and show what changes; Ctrl-C ends it.")
    ] = False,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Show the group: the controller's state, consumers with their load, moves, last decisions.

    A bar is a consumer's capacity, filled with its partitions, in one colour per topic: `load` is
    what is written to them, whatever the consumer carries now. `behind` is what is written and not
    in the lake yet: in records, and how long it takes to write as much at the present speed. That
    is no time to wait: `catching up` says how long that is.

    It counts every partition, also those that nobody reads: there the end of the log and the
    ledger in the lake say it.

    Conditions say what is not well, and why: `blind`, `unread`, `stopped`, `falling behind`, `at
    maximum`, `oversize`, `held`, `unsaved`. Without one the first line says how the group is:
    `not fresh` when the lake is later than `objective.freshness`. Exit code 0: no condition holds.
    9: one does. 1: it cannot be told, because there is no controller, or it is silent; what was
    last known is shown.

    It works from any machine: the controller writes the status to the control topic
    `<prefix>-status` every second (in large groups every four), and to a file in
    `controller.directory`, which is used while it is fresh. `-o json` has `source` (`kafka` or
    `file`) and `age_s`.

    `--watch` shows the group live, with a bar for each consumer and the newest decisions. Where
    stdout is no terminal it prints a line for each change; with `-o json`, each new status.

    Example: `penstock status -o json | jq .conditions`
    """
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    if watch:
        from penstock.cli.watching import watch_group  # noqa: PLC0415 -- slow, and only needed here

        watch_group(loaded, output)
        return
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
    """The status as a table."""
    parts: list[Any] = [headline(found), _totals(found), _controller(found)]
    if found.get("source_problem"):
        problem = (
            f"From the file in this folder; Kafka could not be asked: {found['source_problem']}"
        )
        parts.append(Text(problem, style="yellow"))
    parts += [
        Text(f"{one['condition']}: {one['reason']}", style="bold red")
        for one in found["conditions"]
    ]
    if capacity := capacity_text(found):
        parts.append(Text(capacity, style="dim"))
    parts.append(_consumers(found))
    moves = found["moves"]
    if moves:
        shown = ", ".join(
            f"{m['partition']} {m['at'] or '-'}->{m['to'] or '-'} ({m['status']})"
            for m in moves[:MOVES_SHOWN]
        )
        more = "" if len(moves) <= MOVES_SHOWN else f" and {len(moves) - MOVES_SHOWN} more"
        parts.append(Text(f"moving {len(moves)}: {shown}{more}"))
    parts += [Text(line) for line in _deployment(found)]
    parts.append(_decisions(found["history"][-LAST_DECISIONS:]))
    return Group(*parts)


def _deployment(found: dict[str, Any]) -> list[str]:
    """A roll-out in progress, and how pods are made; local consumers have no image."""
    lines, roll_out = [], found["roll_out"]
    if roll_out:
        # An older release says neither who asked nor what failed.
        fault, requested_by = roll_out.get("fault"), roll_out.get("requested_by")
        what = "rolling back to" if fault else "rolling out"
        done = max(0, roll_out["total"] - roll_out["left"])
        asked_by = f", {requested_by}" if requested_by else ""
        why = f": {fault}" if fault else ""
        lines.append(
            f"{what} version {roll_out['version']} ({roll_out['request_id']}{asked_by}), "
            f"{done} of {roll_out['total']} replaced{why}"
        )
    deployment = found.get("deployment") or {}
    if deployment.get("image"):
        versions = {one["deployment_version"] for one in found["consumers"]}
        others = sum(v != deployment["version"] for v in versions)
        mixed = f"; {counted(others, 'other version')} beside it" if others else ""
        settings = f", settings {deployment['settings']}" if deployment.get("settings") else ""
        lines.append(
            f"deployed: version {deployment['version']}, image {deployment['image']}"
            f"{settings}{mixed}"
        )
    if deployment.get("is_rolled_back"):
        lines.append(
            "The deployment that this controller was started with was rolled back "
            "(`penstock history`); `penstock settings roll-out` tries it again."
        )
    return lines


def _controller(found: dict[str, Any]) -> Text:
    text = Text(f"The controller {doing_text(found)}")
    text.append(f"  plan {found['plan_number']}  epoch {found['controller_epoch']}", style="dim")
    age = found["measurement_age_ms"]
    speeds = "no measurement yet" if age is None else f"speeds {duration_text(age / 1000)} old"
    return text.append(f"  {speeds}{seen_text(found)}", style="dim")


def _totals(found: dict[str, Any]) -> Text:
    written = speed_text(found["written_bytes_per_s"])
    partitions = counted(len(found["partitions"]), "partition")
    consumers = counted(len(found["consumers"]), "consumer")
    text = Text(f"{written} written to {partitions}, {consumers}, behind {backlog_text(found)}")
    if found["behind_unknown"]:
        unknown = counted(found["behind_unknown"], "partition")
        text.append(f", and what waits in {unknown} is unknown", style="bold red")
    return text


def _when(decision: dict[str, Any]) -> str:
    return f"{age_text(decision['age_ms'] / 1000)} ago"


def _why(decision: dict[str, Any]) -> Text:
    """The explanation, and how often it came when it is told once for many times."""
    text, times = plain_text(decision["code"], decision["explanation"]), decision["times"]
    if times == 1:
        return Text(text)
    return Text(f"{text} ({times} times in {age_text(decision['first_age_ms'] / 1000)})")


def _consumers(found: dict[str, Any]) -> Table:
    colours = topic_colours(found["partitions"])
    table = Table("id", "load", "of its capacity", "partitions", "behind", "state", box=None)
    table.columns[1].no_wrap = True
    for one in found["consumers"]:
        figures = load_of_capacity(one["load_bytes_per_s"], one["capacity_bytes_per_s"])
        table.add_row(
            str(one["consumer"]),
            consumer_bar(one, found["partitions"], colours, BAR_WIDTH),
            Text(figures, style="bold red" if share_of_capacity(one) > 1 else ""),
            str(len(one["partitions"])),
            "unknown" if one["behind_records"] is None else f"{one['behind_records']:,}",
            _state_text(one),
        )
    return whole(table)


def _state_text(one: dict[str, Any]) -> str:
    """A batch is nothing to mention; a wait is."""
    occupation = str(one.get("occupation", ""))
    return f"{one['status']}, {occupation}" if "waits" in occupation else str(one["status"])


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
