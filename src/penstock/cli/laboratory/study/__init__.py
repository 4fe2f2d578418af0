"""`penstock study`: measurements behind the design, each with a report in docs/development/studies.

One file per study. A new study is a file and a line here.
"""

import typer

from penstock.cli.laboratory.study import consumer, frequency, monitor, objective, packing

app = typer.Typer(
    no_args_is_help=True, help="Measurements behind the design; each study writes a report."
)

app.command()(packing.packing)
app.command()(frequency.frequency)
app.command()(objective.objective)
app.command()(monitor.monitor)
app.command()(consumer.consumer)
