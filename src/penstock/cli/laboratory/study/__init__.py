"""`penstock study`: measurements that answer a question; the pages are docs/development/studies.

One file per study; adding one is a file and a line here.
"""

import typer

from penstock.cli.laboratory.study import consumer, frequency, monitor, packing

app = typer.Typer(
    no_args_is_help=True, help="Measure what the design rests on; each study writes its page."
)

app.command()(packing.packing)
app.command()(frequency.frequency)
app.command()(monitor.monitor)
app.command()(consumer.consumer)
