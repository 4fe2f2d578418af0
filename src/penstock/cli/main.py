"""The `penstock` program: the list of commands, and how errors become a message and an exit code.

A command's module is imported when the command is called, so that `penstock --help` and small
commands do not wait for Spark, numpy and the drawing library.
"""

import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from penstock import __version__
from penstock.cli.console import say_error
from penstock.errors import PenstockError
from penstock.extras import missing_extra
from penstock.processes.core_dumps import leave_no_core_dumps

# Name, module and attribute, and one sentence; in the order in which a newcomer needs them.
COMMANDS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Try it": (
        ("demo", "laboratory.demo:demo", "Show a whole group at work on an embedded broker."),
        ("init", "init:init", "Write a settings file, a transformation and its test."),
        ("doctor", "doctor:doctor", "Check Java, jars, ports, the broker, topics and rights."),
        ("try", "try_topic:try_topic", "Run a topic's transformation on some of its records."),
        (
            "recommend",
            "recommend:recommend",
            "Watch your load, then say what group it needs; changes nothing.",
        ),
        (
            "simulate",
            "laboratory.simulate:simulate",
            "Show what each packing algorithm would do with a load.",
        ),
        (
            "broker",
            "laboratory.broker:app",
            "Run a real Apache Kafka on this machine: start, stop, status.",
        ),
        ("spark", "spark:app", "Run a Spark Connect server on this machine: start, stop, status."),
        ("load", "laboratory.load:load", "Write to Kafka at known speeds."),
    ),
    "Run the group": (
        ("up", "up:up", "Run the whole group on one machine."),
        ("monitor", "monitor:monitor", "Measure the write speed of every partition."),
        ("controller", "controller:controller", "Lead the group: plan and move partitions."),
        ("consumer", "consumer:consumer", "Carry assigned partitions into the lake."),
    ),
    "Operate it": (
        ("status", "status:status", "Show the group: consumers, load, moves, decisions."),
        ("page", "page:page", "Serve a live page of the group, and its figures as JSON."),
        ("history", "status:history", "Show what the controller decided, why, and what it moved."),
        ("plan", "plan:plan", "Show what a repack would do now; changes nothing."),
        ("speeds", "speeds:speeds", "Show the write speed of every partition, live."),
        ("pause", "service:pause", "Pause scaling up, down or both, until a time."),
        ("resume", "service:resume", "End a pause."),
        ("service", "service:app", "Send requests to the controller."),
        ("topics", "topics:app", "Create and check the control topics."),
        ("lake", "lake:app", "Compact the lake's tables and show their ledger."),
        ("verify", "verify:verify", "Check independently that every record is in the lake once."),
        ("settings", "settings:app", "Show the settings, where they come from, and every option."),
        ("jars", "jars:app", "Fetch the Java archives that the broker and Spark need."),
    ),
    "Study it": (
        (
            "campaign",
            "laboratory.campaign:campaign",
            "Harm a live group at random and count its records.",
        ),
        (
            "study",
            "laboratory.study:app",
            "Measurements behind the design; each study writes a report.",
        ),
    ),
}


class LazyCommand(TyperCommand):
    """An entry in the list of commands; imports the real command when it is called."""

    def __init__(self, name: str, where: str, sentence: str, panel: str) -> None:
        super().__init__(name, help=sentence, short_help=sentence, rich_help_panel=panel)
        self._where = where

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        return self.imported().make_context(info_name, args, parent, **extra)

    def imported(self) -> Any:
        """The real command, or group of commands, with its options."""
        module, _, attribute = self._where.partition(":")
        found = getattr(import_module(f"penstock.cli.{module}"), attribute)
        around = typer.Typer(rich_markup_mode="markdown")
        if isinstance(found, typer.Typer):
            around.add_typer(found, name=self.name)
        else:
            around.command(self.name)(found)
        return typer.main.get_group(around).commands[str(self.name)]


class LazyCommands(TyperGroup):
    """All commands, without importing them."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        for panel, commands in COMMANDS.items():
            for name, where, sentence in commands:
                self.add_command(LazyCommand(name, where, sentence, panel))


app = typer.Typer(
    name="penstock",
    cls=LazyCommands,
    help="Penstock keeps a Kafka consumer group exactly as large as its load.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


@app.callback()
def penstock(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Options of the program itself."""


def main() -> None:
    leave_no_core_dumps()
    try:
        app()
    except PenstockError as error:
        say_error(error)
        sys.exit(error.exit_code)
    except ImportError as error:
        command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
        missing = missing_extra(error, command)
        if missing is None:
            raise
        say_error(missing)
        sys.exit(missing.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
