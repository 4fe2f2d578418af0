"""Remembers named servers that outlive the command that started them.

Each server is a small file below the cache. Its processes are checked: if they are gone, the server
has died.
"""

import json
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.errors import UsageError
from penstock.model.json_text import read_json
from penstock.processes.child import stop_all
from penstock.processes.identity import ProcessIdentity, is_alive

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server started by an earlier command."""

    name: str
    address: str
    processes: tuple[ProcessIdentity, ...]
    log_files: tuple[str, ...]
    data_directory: str
    is_temporary: bool

    @property
    def living(self) -> int:
        return sum(is_alive(process) for process in self.processes)


class ServerRegistry:
    """The running servers of one kind, remembered in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def _file(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} is not a name: use lower case letters, digits and dashes.")
        return self._directory / f"{name}.json"

    def find(self, name: str) -> RunningServer | None:
        try:
            content: dict[str, Any] = read_json(self._file(name).read_text(encoding="utf-8"))
            processes = tuple(ProcessIdentity(**one) for one in content.pop("processes"))
            log_files = tuple(content.pop("log_files"))
            return RunningServer(processes=processes, log_files=log_files, **content)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise UsageError(
                f"{self._file(name)} is not a file that Penstock wrote: {error}.",
                remedy="Remove it, and stop the server by hand if it still runs.",
            ) from error

    def all(self) -> list[RunningServer]:
        names = sorted(file.stem for file in self._directory.glob("*.json"))
        return [found for name in names if (found := self.find(name)) is not None]

    def remember(self, server: RunningServer) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        file = self._file(server.name)
        whole = file.with_suffix(".partial")
        whole.write_text(json.dumps(asdict(server), indent=2), encoding="utf-8")
        whole.rename(file)

    def stop(self, server: RunningServer, *, grace_s: float) -> None:
        """Stop its processes, remove temporary data and its file."""
        stop_all(server.processes, grace_s=grace_s)
        if server.is_temporary:
            shutil.rmtree(server.data_directory, ignore_errors=True)
        self._file(server.name).unlink(missing_ok=True)
