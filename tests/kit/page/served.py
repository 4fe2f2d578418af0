"""A real `penstock page` in a process of its own, beside a status file that a test writes."""

import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.page.made_up_group import MadeUpGroup

# A process that gets no processor for seconds has not failed.
ANSWERS_WITHIN_S = 90.0
_ADDRESS = re.compile(r"(https?)://(\S+):(\d+)/")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Served:
    folder: Path
    process: "subprocess.Popen[bytes]"
    scheme: str
    port: int
    tls: ssl.SSLContext | None = None

    def write(self, snapshot: dict[str, Any]) -> None:
        """As the controller does it; dated now."""
        dated = {**snapshot, "at_unix_ms": round(time.time() * 1000), "has_ended": False}
        partial = self.folder / "status.partial"
        partial.write_text(json.dumps(dated), encoding="utf-8")
        partial.replace(self.folder / "status.json")

    def ask(
        self,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        method: str = "GET",
        host: str = "127.0.0.1",
    ) -> Answer:
        if self.tls is None:
            connection = http.client.HTTPConnection(
                "127.0.0.1", self.port, timeout=ANSWERS_WITHIN_S
            )
        else:
            connection = http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=ANSWERS_WITHIN_S, context=self.tls
            )
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in {"Host": host, **(headers or {})}.items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def wait_until_ready(self, within_s: float = ANSWERS_WITHIN_S) -> None:
        deadline_s = time.monotonic() + within_s
        while self.ask("/readyz").status != 200:
            if time.monotonic() > deadline_s:
                raise AssertionError(self.ask("/readyz").body)
            time.sleep(0.05)

    @property
    def log(self) -> str:
        return (self.folder / "page.log").read_text(encoding="utf-8")


@contextmanager
def served(
    folder: Path,
    *settings: str,
    snapshot: dict[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    arguments: tuple[str, ...] = (),
    tls: ssl.SSLContext | None = None,
    has_group: bool = True,
) -> Iterator[Served]:
    """The page of a made-up group, of the snapshot given, or of no group at all."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = {"controller.directory": str(folder), "page.address": "127.0.0.1:0"}
    chosen |= dict(one.split("=", 1) for one in settings)
    flags = [part for name, value in chosen.items() for part in ("--set", f"{name}={value}")]
    log = folder / "page.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock", "page", *flags, *arguments],
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        found = _address(process, log)
        page = Served(folder, process, found[1], int(found[3]), tls)
        if has_group:
            page.write(MadeUpGroup().step() if snapshot is None else snapshot)
            page.wait_until_ready()
        yield page
    finally:
        if process.poll() is None:
            process.terminate()
        assert process.wait(timeout=ANSWERS_WITHIN_S) == 0, log.read_text(encoding="utf-8")


def _address(process: "subprocess.Popen[bytes]", log: Path) -> "re.Match[str]":
    deadline_s = time.monotonic() + ANSWERS_WITHIN_S
    while (found := _ADDRESS.search(log.read_text(encoding="utf-8"))) is None:
        if process.poll() is not None or time.monotonic() > deadline_s:
            raise AssertionError(f"the page did not start: {log.read_text(encoding='utf-8')}")
        time.sleep(0.05)
    return found
