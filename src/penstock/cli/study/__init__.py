"""`penstock study`: measurements that answer questions of design, and can be run again."""

import typer

from penstock.cli.study import monitor

app = typer.Typer(
    help="Measure again what the design rests on; each study writes its tables and pictures.",
    no_args_is_help=True,
)
app.command()(monitor.monitor)
