"""`penstock demo`: a whole group on one machine for a few minutes, while parts of it are killed."""

import shutil
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any, Self

import typer
from rich.console import Group
from rich.live import Live
from rich.rule import Rule
from rich.table import Table

from penstock.cli.console import data_console, notes, say
from penstock.cli.jars import fetch_with_progress
from penstock.cli.live_view import live_view
from penstock.controller.core.told_status import CarriedSpeed
from penstock.errors import PenstockError
from penstock.jars import USUAL_SETS
from penstock.settings import load_settings

LINE_EVERY_S = 5.0


def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the pictures of the run are written.")
    ] = Path("out/demo"),
    short: Annotated[
        bool, typer.Option("--short", help="Two topics with 8 partitions, in half the time.")
    ] = False,
) -> None:
    """Show a group that follows its load while parts of it are killed.

    It starts a broker and three topics with 24 partitions. The load rises, shifts, bursts, falls.
    One consumer is killed with -9, the controller is killed during a move, partitions are added.
    The exit code is 0 only if every record is in the lake exactly once, and the group grew and
    shrank.
    """
    # Imported late: Spark and the drawing library are slow to import.
    from penstock.laboratory.demo.observation import demo_figures  # noqa: PLC0415 -- see above
    from penstock.laboratory.demo.picture import draw, write_page  # noqa: PLC0415 -- see above
    from penstock.laboratory.demo.run import Demo, result_rows, shortcomings  # noqa: PLC0415 -- see above
    from penstock.laboratory.demo.story import CAPACITY_BYTES_PER_S, SHORT, WHOLE  # noqa: PLC0415 -- see above

    story = SHORT if short else WHOLE
    fetch_with_progress(list(USUAL_SETS))
    out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="penstock-demo-"))
    chosen = demo_settings(folder, story.scale_down_period_s)
    flags = [text for name, value in chosen.items() for text in ("--set", f"{name}={value}")]
    settings = load_settings(flags=chosen, environment={}).settings
    with _View() as view:
        run = Demo(settings, flags=flags, story=story, say=view.say, show=view.show).play()
    figures = demo_figures(run.moments, run.hand_overs)
    rows = result_rows(run, figures)
    picture = out / "demo.png"
    draw(run.moments, run.incidents, CAPACITY_BYTES_PER_S, picture)
    write_page(picture, rows, run.hand_overs, out / "demo.html")
    run.recorded.write(out / "run.html", run.incidents, rows)
    table = Table("", "", box=None, show_header=False)
    for name, value in rows.items():
        table.add_row(name, value)
    data_console().print(table)
    say(f"picture of the run: {picture}")
    say(f"page with the picture and each hand-over: {out / 'demo.html'}")
    say(f"the run, to look at again: {out / 'run.html'}")
    if missing := shortcomings(run):
        raise PenstockError(
            f"The demo failed. {' '.join(missing)}", remedy=f"Logs and lake: {folder}"
        )
    say("The demo succeeded: every record is in the lake exactly once, whatever was killed.")
    shutil.rmtree(folder)  # kept after a failure


def demo_settings(folder: Path, scale_down_period_s: float) -> dict[str, str]:
    """Small consumers and short periods, so that a laptop shows a group within minutes."""
    from penstock.laboratory.demo.story import CAPACITY_BYTES_PER_S  # noqa: PLC0415 -- slow: Kafka

    return {
        "controller.directory": str(folder / "group"),
        "lake.root": str(folder / "lake"),
        "packing.capacity": f"{CAPACITY_BYTES_PER_S}B/s",
        "packing.scale_down_period": f"{scale_down_period_s:g}s",
        "controller.consumers_max": "8",
        "consumer.batch_period": "1s",
        "spark.server_memory": "1GiB",
    }


class _View:
    """Shows the group live on a terminal; prints a line every few seconds elsewhere."""

    def __init__(self) -> None:
        self._live = Live(console=notes, refresh_per_second=4) if notes.is_terminal else None
        self._printed_s = -LINE_EVERY_S
        self._carried = CarriedSpeed()

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        say(text)

    def show(self, at_s: float, status: dict[str, Any]) -> None:
        if self._live is not None:
            self._live.update(self._view(status))
        elif at_s - self._printed_s >= LINE_EVERY_S:
            from penstock.laboratory.demo.narration import carried_text, line  # noqa: PLC0415 -- slow: Kafka

            self._printed_s = at_s
            say(line(at_s, carried_text(status)))

    def _view(self, status: dict[str, Any]) -> Group:
        age_s = max(0.0, time.time() - status["at_unix_ms"] / 1000)
        found = status | {"age_s": age_s}
        return Group(
            Rule(style="dim"),
            live_view(
                found,
                width=notes.width,
                height=notes.height,
                carried_bytes_per_s=self._carried.of(found),
            ),
        )
