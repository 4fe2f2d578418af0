"""The `penstock` program: gathers the commands; an error is one clear message and an exit code."""

import sys

import typer

from penstock import __version__
from penstock.cli import broker, demo, doctor, jars, load, settings, topics
from penstock.cli.console import say_error
from penstock.errors import PenstockError

app = typer.Typer(
    name="penstock",
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
    """Set up what every command shares."""


# One line a command, in the order in which a newcomer meets them.
app.command()(demo.demo)
app.command()(doctor.doctor)
app.add_typer(settings.app, name="settings")
app.add_typer(jars.app, name="jars")
app.add_typer(broker.app, name="broker")
app.add_typer(topics.app, name="topics")
app.command()(load.load)


def main() -> None:
    try:
        app()
    except PenstockError as error:
        say_error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
