"""Real controllers as processes on a real broker, each with a folder of its own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.laboratory.broker import EmbeddedKafka
from penstock.settings import Settings, load_settings

PROGRAM = Path(__file__).parent / "controller_of_one.py"
# Many heartbeats: on a busy machine some come late after the broker is back.
TAKEOVER_AFTER_S = 10.0
# For a process on a busy machine: to start, and to notice and to lead.
BUSY_S = 120.0


@dataclass(frozen=True, slots=True)
class Controller:
    """One controller process with a directory of its own."""

    process: subprocess.Popen[bytes]
    directory: Path
    log: Path

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = self.log.read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines if line.startswith("{")]
        return [row for row in rows if row["event"] == name]

    @property
    def status(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.directory / "status.json").read_text())
        except (OSError, ValueError):
            return {}
        return found


@dataclass(frozen=True, slots=True)
class Controllers:
    kafka: EmbeddedKafka
    folder: Path
    prefix: str

    def flags(self, name: str) -> dict[str, str]:
        return {
            "kafka.bootstrap_servers": self.kafka.bootstrap_servers,
            "topics.prefix": self.prefix,
            "controller.directory": str(self.folder / name),
            "controller.heartbeat_period": "500ms",
            "controller.takeover_after": f"{TAKEOVER_AFTER_S:g}s",
            "controller.consumers_max": "3",
            "log.format": "json",
        }

    @property
    def settings(self) -> Settings:
        return load_settings(flags=self.flags("nobody"), environment={}).settings

    @contextmanager
    def controller(self, name: str, *arguments: str) -> Iterator[Controller]:
        log = self.folder / f"{name}.log"
        variables = {
            "PENSTOCK_" + option.upper().replace(".", "__"): value
            for option, value in self.flags(name).items()
        }
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, str(PROGRAM), *arguments],
                env={**os.environ, **variables},
                stdout=output,
                stderr=output,
            )
        try:
            yield Controller(process, self.folder / name, log)
        finally:
            process.kill()
            process.wait()
            sys.stdout.write(f"{log.name}\n{log.read_text(encoding='utf-8')}")  # seen on failure


def until(condition: Callable[[], object], what: str, within_s: float = BUSY_S) -> float:
    """Wait for it; returns the seconds it took."""
    began_s = time.monotonic()
    while not condition():
        assert time.monotonic() - began_s < within_s, f"not within {within_s:g} s: {what}"
        time.sleep(0.1)
    return time.monotonic() - began_s
