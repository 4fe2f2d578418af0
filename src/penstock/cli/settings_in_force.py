"""Reads which settings are in force in the running group, for `penstock settings` and `up`."""

import time
from contextlib import closing
from pathlib import Path
from typing import Any

from penstock.cli.group_status import StatusSource
from penstock.errors import PenstockError
from penstock.model.json_text import read_json
from penstock.settings import Settings

IN_FORCE_NAME = "settings-in-force.json"


def read_in_force(settings: Settings) -> dict[str, Any] | None:
    """What the running controller wrote; None when none is known to run."""
    with closing(StatusSource(settings)) as source:
        try:
            status = source.read()
        except PenstockError:
            return None
        if status["is_stale"]:
            return None
        return (
            read_in_force_file(settings) if status["source"] == "file" else source.settings_in_force
        )


def read_in_force_file(settings: Settings) -> dict[str, Any] | None:
    file = Path(settings.controller.directory).absolute() / IN_FORCE_NAME
    try:
        found: dict[str, Any] = read_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise PenstockError(f"{file} cannot be read: {error}.") from error
    return found


class StartingChanges:
    """Once, when the controller of a group that starts now has said it: what still holds."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._since_ms = time.time() * 1000
        self._is_told = False

    def lines(self) -> list[str]:
        found = None if self._is_told else read_in_force_file(self._settings)
        if found is None or found["at_unix_ms"] < self._since_ms:
            return []
        self._is_told = True
        lines = [f"dropped: {line}" for line in found["dropped"]]
        lines += [
            f"still holds: {one['option']} {one['value']} ({one['origin']}); the settings have "
            f"{one['otherwise']}"
            for one in found["live_changes"]
        ]
        if found["live_changes"]:
            lines.append(
                "`penstock settings drop --all` takes changed settings back, "
                "`penstock settings roll-out --drop-changes` what was rolled out."
            )
        return lines
