"""`penstock settings`: shows the settings, where they come from, and every option."""

import json

import typer
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
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
    """
    if context.invoked_subcommand is not None:
        return
    loaded = effective_settings(settings, overrides, bootstrap_server)
    values = loaded.settings.model_dump(mode="json")
    rows = []
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
    table = Table("option", "value", "origin", box=None)
    for row in rows:
        shown = "" if row["value"] is None else str(row["value"])
        table.add_row(str(row["option"]), shown, str(row["origin"]))
    print_data(rows, output, table)


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
