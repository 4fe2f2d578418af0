"""The real server of the page, fed with the snapshots of a made-up group.

`python -m kit.page.page_server CONSUMERS PARTITIONS` serves one in a process of its own.
"""

import asyncio
import socket
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import uvicorn

from kit.page.made_up_group import MOVE_AT_S, MadeUpGroup
from kit.page.record import GROUP, as_read, made_up_tables
from penstock.controller.core.dry_run import dry_run, problem_of_question
from penstock.page.core.access import access_of
from penstock.page.core.tables import TablesRead
from penstock.page.process.gate import Gate
from penstock.page.process.group_watching import GroupWatching
from penstock.page.process.lake_tables import LakeTables
from penstock.page.process.routes import ApiRoutes
from penstock.page.process.static_files import static_files
from penstock.settings import Settings
from penstock.settings.sections import LakeSettings, PageSettings

# A few seconds after a plan: partitions are on their way.
SECONDS_BEFORE = MOVE_AT_S + 4
PLAN_EVERY_S = 20
STALE_AFTER_S = 5.0
START_WITHIN_S = 90.0


class MadeUpTables(LakeTables):
    def __init__(self, name: str) -> None:
        super().__init__(LakeSettings())
        self._name = name

    async def newest(self) -> TablesRead:
        return made_up_tables(round(time.time() * 1000), self._name)


class PageServer:
    """Serves from its own thread until the block ends; `pace` says what the group does meanwhile.

    `runs`: a second passes with every reading. `stands`: it stays as it is, and goes on reporting.
    `silent`: the controller reports no more.
    """

    def __init__(
        self,
        group: MadeUpGroup | None = None,
        *,
        seconds_before: int = SECONDS_BEFORE,
        pace: str = "stands",
        port: int = 0,
        lake: LakeSettings | None = None,
        table: str = "",
    ) -> None:
        """Without a lake its tables are made up; the first is called as `table` says."""
        self.group = group or MadeUpGroup()
        self.pace = pace
        self._tables = MadeUpTables(table) if lake is None else LakeTables(lake)
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listening.getsockname()[1]
        self._watching = GroupWatching(self._read, group=GROUP)
        self._newest: dict[str, Any] = {}
        self._now_ms = round(time.time() * 1000) - seconds_before * 1000
        for second in range(seconds_before):
            self._now_ms += 1000
            self._newest = self.group.step()
            if second % PLAN_EVERY_S == 0:
                plan = dry_run("CHAIN", problem_of_question(self._newest["question"]))
                self._watching.watch.take_plan(plan, self._now_ms)
            self._watching.watch.add(self._told())
        self._server: uvicorn.Server | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def snapshot(self) -> dict[str, Any]:
        """The newest that the server was given."""
        return self._newest

    def change(self, **changes: Any) -> None:
        """From now on the snapshot says this."""
        self._newest = {**self._newest, **changes}

    def _read(self) -> dict[str, Any]:
        if self.pace == "runs":
            self._newest = self.group.step()
        if self.pace != "silent":
            self._now_ms = round(time.time() * 1000)
        return self._told()

    def _told(self) -> dict[str, Any]:
        told = as_read({**self._newest, "at_unix_ms": self._now_ms})
        age_s = max(0.0, time.time() - self._now_ms / 1000)
        if self.pace == "silent" and age_s > STALE_AFTER_S:
            silence = f"The controller has not reported for {age_s:.0f} s."
            told |= {"age_s": age_s, "is_stale": True, "silence": silence}
        return told

    def __enter__(self) -> Self:
        self._thread.start()
        end_s = time.monotonic() + START_WITHIN_S
        while self._server is None or not self._server.started:
            if time.monotonic() > end_s or not self._thread.is_alive():
                raise AssertionError("the page's server did not start")
            time.sleep(0.02)  # until it listens
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        if self._server is not None:
            self._server.should_exit = True
            self._server.force_exit = True
        self._thread.join(START_WITHIN_S)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        settings = Settings(page=PageSettings(address=f"127.0.0.1:{self.port}"))
        routes = ApiRoutes(self._watching, self._tables, static_files())
        gate = Gate(routes.app(), access_of(settings.page, []), is_secure=False)
        config = uvicorn.Config(
            gate, lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        reading = asyncio.create_task(self._watching.run())
        try:
            await self._server.serve(sockets=[self._listening])
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading


def main() -> None:
    consumers, partitions = int(sys.argv[1]), int(sys.argv[2])
    topics = 40 if partitions > 1_000 else 4
    group = MadeUpGroup(consumers=consumers, partitions=partitions, topics=topics)
    with PageServer(group, seconds_before=int(sys.argv[3]), pace="runs") as server:
        sys.stdout.write(f"{server.address}\n")
        sys.stdout.flush()
        sys.stdin.read()  # until the parent closes it


if __name__ == "__main__":
    main()
