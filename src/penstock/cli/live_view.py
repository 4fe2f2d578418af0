"""The group as a live view for a terminal: `penstock status --watch` and the demo show it."""

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from penstock.cli.consumer_bar import consumer_bar, share_of_capacity, topic_colours
from penstock.cli.group_status import is_stale, silence_text
from penstock.controller.core.told_status import (
    NOT_FRESH,
    backlog_text,
    consumer_counts,
    decision_text,
    doing_text,
    progress_text,
)
from penstock.model.sentences import (
    age_text,
    counted,
    duration_text,
    load_of_capacity,
    shortened_list,
    speed_text,
)

DECISIONS_SHOWN = 5
MOVES_SHOWN = 4
# What stands beside a bar: the number, the load, the partitions, a state.
_BESIDE_A_BAR = 48
_BAR_MIN, _BAR_MAX = 12, 60
# The lines above and below the bars, the decisions not folded.
_OTHER_LINES = 11
_CONSUMERS_MIN = 3


def live_view(
    found: dict[str, Any],
    *,
    width: int,
    height: int,
    carried_bytes_per_s: float | None = None,
) -> Group:
    """`height` limits how many consumers are shown: the fullest ones, in the order of their ids."""
    parts: list[Any] = [
        headline(found, carried_bytes_per_s).append(seen_text(found), style="dim"),
        _figures(found, carried_bytes_per_s),
    ]
    parts += [
        Text(f"{one['condition']}: {one['reason']}", style="bold red")
        for one in found["conditions"]
    ]
    rows = max(_CONSUMERS_MIN, height - _OTHER_LINES - DECISIONS_SHOWN - len(found["conditions"]))
    parts += [Text(), _bars(found, width, rows)]
    moves = found["moves"]
    if moves:
        shown = [
            f"{one['partition']} {_place(one['at'])}→{_place(one['to'])}"
            for one in moves[:MOVES_SHOWN]
        ]
        more = len(moves) - len(shown)
        listed = ", ".join(shown) + (f" and {more} more" if more else "")
        parts.append(Text(f"moving {counted(len(moves), 'partition')}: {listed}"))
    parts += [Text(), _decisions(found["history"])]
    return Group(*parts)


def _place(consumer: int | None) -> str:
    return "nobody" if consumer is None else str(consumer)


def headline(found: dict[str, Any], carried_bytes_per_s: float | None = None) -> Text:
    """How the group is, before anything else. The speed is shown in place of the status's own."""
    text = Text()
    if found.get("group"):
        text.append(f"group {found['group']}  ", style="bold")
    if is_stale(found):
        return text.append(f"{silence_text(found)} What was known then:", style="bold red")
    if found["conditions"]:
        names = shortened_list([one["condition"] for one in found["conditions"]], 3)
        text.append(f"not well: {names}", style="bold red")
    else:
        progress = progress_text(found, carried_bytes_per_s)
        text.append(
            progress, style="bold yellow" if progress.startswith(NOT_FRESH) else "bold green"
        )
    return text


def seen_text(found: dict[str, Any]) -> str:
    """How old it is, and where it was found; empty where the first line says that already."""
    if is_stale(found):
        return ""
    where = " in Kafka" if found.get("source") == "kafka" else ""
    return f"  seen {duration_text(found['age_s'])} ago{where}"


def _figures(found: dict[str, Any], carried_bytes_per_s: float | None) -> Table:
    table = Table.grid(padding=(0, 2))
    topics = len({name.rpartition("-")[0] for name in found["partitions"]})
    partitions = counted(len(found["partitions"]), "partition")
    written = speed_text(found["written_bytes_per_s"])
    table.add_row("written", f"{written} to {partitions} of {counted(topics, 'topic')}")
    carried = "not known yet"
    if carried_bytes_per_s is not None:
        carried = f"about {speed_text(carried_bytes_per_s)}"
    table.add_row("carried", carried)
    table.add_row("consumers", str(consumer_counts(found)))
    table.add_row("backlog", whole_backlog_text(found))
    table.add_row("controller", Text(doing_text(found)))
    return table


def whole_backlog_text(found: dict[str, Any]) -> str:
    """What waits, and where that is unknown."""
    unknown = found["behind_unknown"]
    more = f", and an unknown number in {counted(unknown, 'partition')}" if unknown else ""
    return f"{backlog_text(found)}{more}"


def _bars(found: dict[str, Any], width: int, rows: int) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right")
    for _ in range(4):
        table.add_column(no_wrap=True)
    bar_width = max(_BAR_MIN, min(_BAR_MAX, width - _BESIDE_A_BAR))
    colours = topic_colours(found["partitions"])
    consumers = found["consumers"]
    shown = sorted(consumers, key=share_of_capacity, reverse=True)[:rows]
    for one in sorted(shown, key=lambda one: int(one["consumer"])):
        figures = load_of_capacity(one["load_bytes_per_s"], one["capacity_bytes_per_s"])
        table.add_row(
            str(one["consumer"]),
            consumer_bar(one, found["partitions"], colours, bar_width, found["target_utilisation"]),
            Text(figures, style="bold red" if share_of_capacity(one) > 1 else ""),
            counted(len(one["partitions"]), "partition"),
            Text("" if one["status"] == "ready" else one["status"], style="yellow"),
        )
    if len(consumers) > len(shown):
        left = counted(len(consumers) - len(shown), "consumer")
        table.add_row("", Text(f"and {left} with less load", style="dim"))
    if not consumers:
        table.add_row("", Text("no consumer yet", style="dim"))
    return table


def _decisions(history: list[dict[str, Any]]) -> Table:
    """Newest first: on a small screen the oldest one falls off."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for one in reversed(history[-DECISIONS_SHOWN:]):
        table.add_row(f"{age_text(one['age_ms'] / 1000)} ago", Text(decision_text(one)))
    return table
