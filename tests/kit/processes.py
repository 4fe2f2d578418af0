"""Looks for processes that should not be there."""

from pathlib import Path


def processes_naming(text: str) -> list[int]:
    """The living processes whose command line contains `text`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if text in command:
                found.append(int(entry.name))
    return found
