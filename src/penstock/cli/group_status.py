"""Reads the controller's status file, for `status`, `plan`, `history` and the demo.

The file stays when the controller ends: `age_s` and `is_stale` show how old it is.
"""

import json
import time
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.settings import Settings

STATUS_NAME = "status.json"
# The controller writes every second.
STALE_AFTER_S = 5.0


def read_status(settings: Settings) -> dict[str, Any]:
    """The newest snapshot, with how old it is."""
    file = Path(settings.controller.directory).absolute() / STATUS_NAME
    try:
        status: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        status["age_s"] = max(0.0, time.time() - status["at_unix_ms"] / 1000)
        status["is_stale"] = is_stale(status)
        _age(status)
    except FileNotFoundError:
        raise PenstockError(
            f"No controller has written {file}.",
            remedy="Start `penstock up`, or name its directory: --set controller.directory=DIR.",
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PenstockError(f"{file} cannot be read: {error}.") from error
    return status


def _age(status: dict[str, Any]) -> None:
    """Count ages up to now: the file has them as they were when it was written."""
    passed_ms = round(status["age_s"] * 1000)
    for decision in status["history"]:
        decision["age_ms"] += passed_ms
    if status["measurement_age_ms"] is not None:
        status["measurement_age_ms"] += passed_ms


def is_stale(status: dict[str, Any]) -> bool:
    """Whether the controller has stopped writing: it ended, or is being restarted."""
    return bool(status["age_s"] > STALE_AFTER_S)


def require_news(status: dict[str, Any]) -> None:
    """Refuse a stale status, for commands whose answer would be wrong with it."""
    if is_stale(status):
        raise PenstockError(
            f"The controller has not reported for {age_text(status['age_s'])}.",
            remedy="Check that it runs; `penstock status` shows what was last known.",
        )


def age_text(seconds: float) -> str:
    for size_s, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size_s:
            return f"{seconds / size_s:.0f} {unit}"
    return f"{seconds:.0f} s"
