"""Looks for processes that should not be there."""

from pathlib import Path


def processes_naming(text: str) -> list[int]:
    """The living processes whose command line contains `text`."""
    return [pid for pid, command in command_lines().items() if text in command]


def command_lines() -> dict[int, str]:
    """What every living process was started with."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue
            found[int(entry.name)] = command
    return found


def children_of(parent: int, naming: str) -> set[int]:
    """The living processes that `parent` started and whose command line contains `naming`."""
    return {pid for pid in processes_naming(naming) if _parent_of(pid) == parent}


def _parent_of(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(stat.rpartition(")")[2].split()[1])
