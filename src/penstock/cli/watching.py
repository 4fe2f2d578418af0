"""`penstock status --watch`: looks again and again, and shows the group live.

On a terminal it is a view that changes in place. Elsewhere it prints a line when something has
changed, or with `-o json` each new status.
"""

import json
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import typer
from rich.live import Live
from rich.text import Text

from penstock.cli.console import OutputFormat, data_console
from penstock.cli.group_status import StatusSource, is_stale, silence_text
from penstock.cli.live_view import live_view, whole_backlog_text
from penstock.controller.core.told_status import (
    CarriedSpeed,
    NewDecisions,
    consumer_counts,
    decision_text,
    progress_text,
)
from penstock.errors import PenstockError, UsageError
from penstock.model.sentences import speed_text
from penstock.settings import Settings

LOOK_EVERY_S = 0.5


def watch_group(settings: Settings, output: OutputFormat) -> None:
    """Until Ctrl-C; an error at the first look ends it, a later one is shown."""
    if output is OutputFormat.YAML:
        raise UsageError("`--watch` prints a live view, or with `-o json` a status on each line.")
    with closing(StatusSource(settings)) as source:
        try:
            if output is OutputFormat.JSON:
                _each_status(source, _print_json)
            elif data_console().is_terminal:
                _view(source)
            else:
                _each_status(source, ChangesInLines(typer.echo).show)
        except KeyboardInterrupt:
            return


def _print_json(found: dict[str, Any]) -> None:
    typer.echo(json.dumps(found))


def _view(source: StatusSource) -> None:
    found = source.read()
    carried, console = CarriedSpeed(), data_console()
    fault = ""
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            shown = live_view(
                found,
                width=console.width,
                height=console.height,
                carried_bytes_per_s=carried.of(found),
            )
            live.update(shown, refresh=True)
            time.sleep(LOOK_EVERY_S)  # a person does not see more
            try:
                found, fault = source.read(), ""
            except PenstockError as error:
                if error.message != fault:  # once, not twice a second
                    fault = error.message
                    live.console.print(Text(fault, style="red"))


def _each_status(source: StatusSource, show: Callable[[dict[str, Any]], None]) -> None:
    """Show every status that is not the last one again, and the silence that follows the last."""
    last: tuple[object, ...] = ()
    fault = ""
    found = source.read()
    while True:
        now = (found["controller_epoch"], found["at_unix_ms"], found["is_stale"])
        if now != last:
            last = now
            show(found)
        time.sleep(LOOK_EVERY_S)  # a status comes once a second at most
        try:
            found, fault = source.read(), ""
        except PenstockError as error:
            if error.message != fault:  # once, not twice a second
                fault = error.message
                typer.echo(fault, err=True)


class ChangesInLines:
    """Prints what changed between statuses: decisions, conditions, the number of consumers."""

    def __init__(self, print_line: Callable[[str], None]) -> None:
        self._print_line = print_line
        self._decisions = NewDecisions()
        self._before: tuple[object, ...] = ()

    def show(self, found: dict[str, Any]) -> None:
        at = datetime.fromtimestamp(found["at_unix_ms"] / 1000, UTC)
        for one in self._decisions.of(found):
            self._say(at, decision_text(one))
        counts = consumer_counts(found)
        conditions = [f"{one['condition']}: {one['reason']}" for one in found["conditions"]]
        progress = progress_text(found)
        # Reasons and progress have figures, which change all the time; how they begin does not.
        names = [one["condition"] for one in found["conditions"]] or [progress.partition(":")[0]]
        now = (counts, *names, found["is_stale"])
        if now == self._before:
            return
        self._before = now
        if is_stale(found):
            self._say(at, silence_text(found))
            return
        written = speed_text(found["written_bytes_per_s"])
        state = "; ".join(conditions) or progress
        self._say(at, f"{written} written; {counts}; behind {whole_backlog_text(found)}; {state}")

    def _say(self, at: datetime, text: str) -> None:
        self._print_line(f"{at:%H:%M:%S} {text}")
