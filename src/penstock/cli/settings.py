"""`penstock settings`: shows the settings, where they come from, and every option."""

import json
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.cli.service import ask, finish, made_request
from penstock.cli.settings_in_force import read_in_force
from penstock.errors import UsageError
from penstock.settings import Settings
from penstock.settings.reference import options_markdown, reference_yaml
from penstock.settings.tree import known_options

app = typer.Typer(help="Show the settings, where they come from, and every option.")


@app.callback(invoke_without_command=True)
def show(
    context: typer.Context,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Print the settings and the origin of each value; exit code 3 if they are wrong.

    Flags win over the environment (`PENSTOCK_KAFKA__BOOTSTRAP_SERVERS`), and that wins over the
    file. Secrets print as `***`.

    While a controller leads the group, here or elsewhere on its Kafka, the values are those in
    force, with the requests that changed them; a value that your file, environment or flags have
    now, and that is not in force, stands beside it.
    """
    if context.invoked_subcommand is not None:
        return
    loaded = effective_settings(settings, overrides, bootstrap_server)
    values = loaded.settings.model_dump(mode="json")
    rows: list[dict[str, Any]] = []
    for path in known_options():
        value = values
        for name in path:
            value = value[name]
        rows.append(
            {
                "option": ".".join(path),
                "value": value,
                "origin": loaded.origin.get(path) or loaded.derived.get(path, "default"),
            }
        )
    running = read_in_force(loaded.settings)
    if running is not None:
        rows = [_in_force(row, running["options"].get(row["option"])) for row in rows]
        say("In force in the running group. `penstock settings roll-out` brings your file into it.")
    table = Table("option", "value", "origin", *(["not in force"] if running else []), box=None)
    for row in rows:
        shown = value_text(row["value"])
        beside = [row.get("not_in_force", "")] if running else []
        # As text: what a regular expression has in brackets is no markup.
        table.add_row(*(Text(one) for one in (row["option"], shown, str(row["origin"]), *beside)))
    print_data(rows, output, table)


def value_text(value: Any) -> str:
    """A value in a cell: no Python, and of what is large only the names."""
    if value is None or value in ({}, []):
        return ""
    if isinstance(value, dict) and any(isinstance(one, dict) for one in value.values()):
        return f"{', '.join(value)} (whole: -o yaml)"
    if isinstance(value, dict):
        return ", ".join(f"{name}={one}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def _in_force(row: dict[str, Any], found: dict[str, Any] | None) -> dict[str, Any]:
    """The row of the running group, with the value that a start now would have beside it."""
    if found is None:  # an option that the controller's release does not know
        return row
    after = {"option": row["option"], **found}
    if found["value"] != row["value"]:
        after["not_in_force"] = f"{value_text(row['value']) or 'nothing'} ({row['origin']})"
    return after


@app.command()
def drop(
    options: Annotated[
        list[str] | None, typer.Argument(help="The settings, such as packing.capacity.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    wait: Annotated[str, typer.Option(help="How long to wait for the outcome.")] = "5m",
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Take back what requests changed in the running group; the settings count again.

    Example: `penstock settings drop packing.capacity`
    """
    if bool(options) == everything:
        raise UsageError("Name the settings to take back, or give --all.")
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    request = made_request("drop-changes", json.dumps({"options": options or []}))
    finish(ask(loaded, request, wait), output)


@app.command("roll-out")
def roll_out(
    drop_changes: Annotated[
        bool,
        typer.Option(
            "--drop-changes",
            help="Take back what earlier roll-outs changed: transformations, Spark options, "
            "environment, image and resources.",
        ),
    ] = False,
    wait: Annotated[str, typer.Option(help="How long to wait for the outcome.")] = "5m",
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Bring the edited settings file into the running group, all of it.

    The controller reads the file it was started with again, and replaces every consumer in turn. It
    refuses a file that is wrong, and changes that need a restart (such as another Kafka).
    """
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    fields = {"from_settings": True, "drop_changes": drop_changes}
    request = made_request("update-deployments", json.dumps(fields))
    finish(ask(loaded, request, wait), output)


@app.command()
def reference() -> None:
    """Print a commented settings file with every option at its default.

    Example: `penstock settings reference > penstock.yaml`
    """
    typer.echo(reference_yaml(), nl=False)


@app.command()
def schema() -> None:
    """Print the JSON Schema of the settings file, for editors."""
    typer.echo(json.dumps(Settings.model_json_schema(), indent=2))


@app.command(hidden=True)
def markdown() -> None:
    """Print the table of docs/options.md."""
    typer.echo(options_markdown(), nl=False)
