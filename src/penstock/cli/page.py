"""`penstock page`: the live page of the group, and the API behind it."""

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli.console import say
from penstock.cli.group_status import StatusSource, silence_text
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings


def page(
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="When it ends, write all that it saw into this HTML file, which needs no server.",
        ),
    ] = None,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
) -> None:
    """Serve a live page of the group, and its figures as JSON under `/v1`. Changes nothing.

    It prints its address. By default it listens on this machine only. Any other `page.address`
    needs a token, and TLS or a proxy that does it; docs/api.md says how. Ctrl-C ends it.

    Examples:
    `penstock page`

    `penstock page --set page.address=127.0.0.1:9000 --export run.html`

    """
    from penstock.page.process.server import run_page  # noqa: PLC0415 -- an extra

    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    with closing(StatusSource(loaded)) as source:
        run_page(loaded, lambda: watched_status(source), say=say, export=export)


def watched_status(source: StatusSource) -> dict[str, Any]:
    """The newest status, with words for a silence."""
    found = source.read()
    found["silence"] = silence_text(found) if found["is_stale"] else None
    return found
