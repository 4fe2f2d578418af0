"""Named servers that outlive their command; used by `penstock broker` and `penstock spark`."""

import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from penstock.cli.console import OutputFormat, print_data, say
from penstock.errors import PenstockError, UsageError
from penstock.jars import cache_directory
from penstock.processes import RunningServer, ServerRegistry

Name = Annotated[str, typer.Option("--name", help="Its name, if several run side by side.")]


@dataclass(frozen=True, slots=True)
class NamedServers:
    """One kind of server: its command, its name in messages, and how to read its state."""

    command: str
    called: str
    grace_s: float
    state_of: Callable[[RunningServer], str]

    @property
    def registry(self) -> ServerRegistry:
        return ServerRegistry(cache_directory() / "run" / self.command)

    def refuse_twice(self, name: str) -> None:
        known = self.registry.find(name)
        if known is not None and known.living:
            stop = f"`penstock {self.command} stop --name {name}`"
            raise UsageError(
                f"A {self.called} named {name!r} is already running at {known.address}.",
                remedy=f"Stop it with {stop}, or give another --name.",
            )

    def remember(self, server: RunningServer, undo: Callable[[], None]) -> None:
        """Register the server; if that fails, stop it, because it could not be found again."""
        try:
            self.registry.remember(server)
        except OSError as error:
            undo()
            raise PenstockError(f"Could not register the {self.called}: {error}.") from error

    def print_address(self, server: RunningServer, output: OutputFormat) -> None:
        """Print only the address to stdout, so that a shell can capture it."""
        if output is OutputFormat.TABLE:
            typer.echo(server.address)
        else:
            print_data(self._described(server), output)

    def stay_with(
        self, server: RunningServer, output: OutputFormat, stop: Callable[[], None]
    ) -> None:
        """Run in the foreground until SIGTERM or Ctrl-C, then stop it; an error if it dies before.

        The first process of a container gets SIGTERM only if it installs a handler.
        """
        stop_requested = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop_requested.set())
        try:
            self.print_address(server, output)
            say("Ctrl-C stops it.")
            while server.living == len(server.processes):
                if stop_requested.wait(0.5):
                    return
            end = Path(server.log_files[0]).read_text(encoding="utf-8", errors="replace")[-2000:]
            raise PenstockError(f"The {self.called} died. Its log ends:\n{end}")
        finally:
            stop()

    def stop(self, name: str) -> None:
        server = self.registry.find(name)
        if server is None:
            say(f"No {self.called} named {name!r} is running.")
            return
        say(f"stopping {server.address}")
        self.registry.stop(server, grace_s=self.grace_s)

    def print_status(self, output: OutputFormat) -> None:
        servers = [self._described(server) for server in self.registry.all()]
        if output is OutputFormat.TABLE and not servers:
            start = f"`penstock {self.command} start`"
            say(f"No {self.called} is running. {start} starts one.")
            return
        table = Table("name", "address", "state", "processes", "data", box=None)
        for one in servers:
            table.add_row(
                one["name"], one["address"], one["state"], one["living"], one["data_directory"]
            )
        print_data(servers, output, table)

    def _described(self, server: RunningServer) -> dict[str, str]:
        return {
            "name": server.name,
            "address": server.address,
            "state": self.state_of(server) if server.living else "dead",
            "living": f"{server.living}/{len(server.processes)}",
            "data_directory": server.data_directory,
            "log_files": ", ".join(server.log_files),
        }
