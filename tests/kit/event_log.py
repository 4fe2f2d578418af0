"""The log of a running process, in lines of JSON: each look reads only what is new."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class EventLog:
    """A whole debug log, parsed at each of twenty looks a second, would take a core."""

    file: Path
    _read_bytes: int = 0
    _events: list[dict[str, Any]] = field(default_factory=list)

    def events(self, name: str) -> list[dict[str, Any]]:
        """What was logged under this name."""
        with self.file.open("rb") as log:
            log.seek(self._read_bytes)
            for line in log:
                if not line.endswith(b"\n"):
                    break  # it is being written
                self._read_bytes += len(line)
                if line.startswith(b"{"):
                    self._events.append(json.loads(line.decode(errors="replace")))
        return [event for event in self._events if event["event"] == name]
