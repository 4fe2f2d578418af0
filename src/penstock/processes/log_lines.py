"""The lines that a process has written to its log since it was started.

Logs are appended to: what a former process wrote would be taken for the reason of a new failure.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class LogLines:
    """What a log file has from a place on."""

    file: Path
    begins_at_byte: int = 0

    @classmethod
    def from_now(cls, file: Path) -> Self:
        """What will be written from now on."""
        return cls(file, file.stat().st_size if file.exists() else 0)

    def text(self) -> str:
        if not self.file.exists():
            return ""
        with self.file.open("rb") as log:
            log.seek(self.begins_at_byte)
            return log.read().decode("utf-8", errors="replace")
