"""A copy of the settings that a group was started with, for its own processes.

A consumer that is created or restarted hours later must run with the settings that the controller
was started with, whatever happened to the file meanwhile. The copy has every value that was set (by
the file, the environment and the flags) and where it came from. It has no secret: those stay in the
environment, or in the files that the copy names.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

import yaml

from penstock.settings.load import LoadedSettings
from penstock.settings.snapshot_mark import SnapshotMark
from penstock.settings.tree import secret_options

FOLDER = "settings"
# What the monitor and the controller of `penstock up` are started with.
CURRENT = "current.yaml"
# Sections that no consumer reads.
_NOT_FOR_CONSUMERS = frozenset({"kubernetes", "controller", "packing", "monitor"})


def snapshot_text(loaded: LoadedSettings) -> str:
    tree: dict[str, Any] = {}
    values = {p: v for p, v in loaded.given.items() if p not in loaded.secret_files}
    values |= {(*p[:-1], f"{p[-1]}_file"): file for p, file in loaded.secret_files.items()}
    for path, value in sorted(values.items()):
        section = tree
        for name in path[:-1]:
            section = section.setdefault(name, {})
        section[path[-1]] = value
    # As it was named: all processes of a group work in one folder.
    source = loaded.snapshot_of if loaded.is_snapshot else loaded.file
    mark = SnapshotMark(source, loaded.origin)
    return mark.line() + yaml.safe_dump(tree, sort_keys=True)


def consumers_digest(
    loaded: LoadedSettings, *, is_compared: bool = True, has_secrets: bool = True
) -> str:
    """Changes with what consumers run with, and with nothing else.

    Always the same where nobody compares it: consumers of `penstock up` end with it. Without
    secrets, where others than the operator can read it.
    """
    if not is_compared:
        return "not-compared"
    values = {**loaded.given, **loaded.secret_files}
    hidden = frozenset() if has_secrets else secret_options()
    theirs = {p: v for p, v in values.items() if p[0] not in _NOT_FOR_CONSUMERS and p not in hidden}
    return hashlib.sha256(repr(sorted(theirs.items())).encode()).hexdigest()[:16]


def write_snapshot(directory: Path, loaded: LoadedSettings) -> Path:
    """A file that is never changed: its name is of its content."""
    text = snapshot_text(loaded)
    name = f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.yaml"
    return replace_file(directory / FOLDER / name, text)


def replace_file(file: Path, text: str) -> Path:
    """Written beside the former one and renamed: a reader has one of the two."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(file)
    return file
