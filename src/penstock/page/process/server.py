"""Runs the page: reads the group, answers requests, ends on a signal."""

import asyncio
import gc
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from penstock.errors import PenstockError, SettingsError
from penstock.page.core.access import access_of
from penstock.page.core.frames import Frames, RunStory, whole_run
from penstock.page.core.view import Json
from penstock.page.process.connections import (
    GuardedLoop,
    GuardedProtocol,
    end_slow_clients,
)
from penstock.page.process.gate import Gate
from penstock.page.process.group_watching import GroupWatching
from penstock.page.process.lake_tables import LakeTables, read_tables
from penstock.page.process.routes import ApiRoutes
from penstock.page.process.run_file import write_run
from penstock.page.process.static_files import static_files
from penstock.settings import Settings
from penstock.settings.sections import PageSettings

HEAD_BYTES_MAX = 16 * 1024
OPEN_FILES_WANTED = 8_192
CONNECTIONS_WAITING_MAX = 2_048
# So many new objects before Python first looks for cycles of references among them.
OBJECTS_UNCHECKED = 100_000


def run_page(
    settings: Settings,
    read: Callable[[], Json],
    *,
    say: Callable[[str], None],
    export: Path | None = None,
) -> None:
    """Serve until a signal comes. With `export`, write all that was seen into this file then."""
    page = settings.page
    access = access_of(page, own_names())
    static = static_files()
    frames = Frames() if export is not None else None
    watching = GroupWatching(read, group=settings.lake.group, frames=frames)
    routes = ApiRoutes(watching, LakeTables(settings.lake), static)
    is_secure = bool(page.certificate_file) or page.behind_proxy
    app = Gate(routes.app(), access, is_secure=is_secure)
    # A status of a large group is a hundred thousand objects, none of them in a cycle: to look for
    # cycles in every new one is a fifth of what the page costs.
    gc.set_threshold(OBJECTS_UNCHECKED)
    with _listening(page) as listening:
        say(f"The page is at {url_of(page, listening.getsockname()[1])}")
        with asyncio.Runner(loop_factory=GuardedLoop) as runner:
            runner.run(_serve(_Server(_config(page, app)), watching, listening))
    if export is not None and frames is not None:
        story = RunStory(f"Group {settings.lake.group}")
        tables = read_tables(settings.lake)
        run = whole_run(watching.watch, watching.group, frames, story, tables)
        write_run(export, run)
        say(f"What was seen is in {export}")


def url_of(page: PageSettings, port: int) -> str:
    scheme = "https" if page.certificate_file else "http"
    host = page.host if ":" not in page.host else f"[{page.host}]"
    token = "" if page.token is None else "  (open it with #token=TOKEN behind it)"
    return f"{scheme}://{host}:{port}/{token}"


def own_names() -> list[str]:
    """The names that this machine has for itself."""
    return [socket.gethostname(), socket.getfqdn()]


@contextmanager
def _listening(page: PageSettings) -> Iterator[socket.socket]:
    """Bound here, so that an address that is taken is told in one sentence."""
    family = socket.AF_INET6 if ":" in page.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((page.host, page.port))
            listening.listen(CONNECTIONS_WAITING_MAX)  # before the address is said
        except OSError as error:
            raise PenstockError(
                f"The page cannot listen on {page.address}: {error.strerror or error}.",
                remedy="Choose another with --set page.address=127.0.0.1:PORT; port 0 takes any "
                "free one.",
            ) from error
        yield listening


def _config(page: PageSettings, app: Gate) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        http=GuardedProtocol,
        ws="none",
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        log_level="error",
        timeout_keep_alive=5,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        ssl_certfile=page.certificate_file or None,
        ssl_keyfile=page.key_file or None,
    )
    try:
        config.load()
    except OSError as error:
        raise SettingsError(
            f"The certificate of the page cannot be used: {error}.",
            remedy="Check page.certificate_file and page.key_file: both are PEM files.",
        ) from error
    return config


class _Server(uvicorn.Server):
    """Ends in order on a signal, and does not raise it again: something may be left to write."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.end)
        yield

    def end(self) -> None:
        self.force_exit = self.should_exit  # the second signal waits for nobody
        self.should_exit = True


async def _serve(server: _Server, watching: GroupWatching, listening: socket.socket) -> None:
    _allow_open_files()
    tasks = [asyncio.create_task(watching.run()), asyncio.create_task(end_slow_clients())]
    for task in tasks:
        task.add_done_callback(lambda _: server.end())
    try:
        await server.serve(sockets=[listening])
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for error in ended:
        if not isinstance(error, asyncio.CancelledError):
            # What it serves would stay as it is, and look new.
            raise PenstockError(
                f"The page has stopped watching the group: {error!r}.",
                remedy="Start it again, and please report this.",
            ) from error


def _allow_open_files() -> None:
    """As many connections as are allowed, and those that TLS has not greeted yet."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES_WANTED)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
