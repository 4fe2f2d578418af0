<<<<<<< HEAD
"""`penstock study`: measurements that answer a question once, each with its page in docs/studies.

One file per study; adding one is a file and a line here.
"""

import typer

from penstock.cli.study import frequency, packing

app = typer.Typer(
    no_args_is_help=True, help="Measure what the design rests on; each study writes its page."
)

app.command()(packing.packing)
<<<<<<< HEAD
=======
"""`penstock study`: measurements that answer questions of design, and can be run again."""

import typer

from penstock.cli.study import monitor

app = typer.Typer(
    help="Measure again what the design rests on; each study writes its tables and pictures.",
    no_args_is_help=True,
)
app.command()(monitor.monitor)
>>>>>>> monitor
=======
app.command()(frequency.frequency)
>>>>>>> packing
