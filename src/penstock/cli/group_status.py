"""Reads what the controller last wrote about itself: for status, plan, history and the demo."""

import json
import time
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.settings import Settings

STATUS_NAME = "status.json"
STALE_AFTER_S = 5.0


def read_status(settings: Settings) -> dict[str, Any]:
    """The newest snapshot, with how old it is."""
    file = Path(settings.controller.directory).absolute() / STATUS_NAME
    try:
        status: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        status["age_s"] = max(0.0, time.time() - status["at_unix_ms"] / 1000)
    except FileNotFoundError:
        raise PenstockError(
            f"No controller has written {file}.",
            remedy="Start `penstock up`, or name its directory: --set controller.directory=DIR.",
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PenstockError(f"{file} cannot be read: {error}.") from error
    return status


def is_stale(status: dict[str, Any]) -> bool:
    """Whether the controller has stopped writing: it died, or is about to be started again."""
    return bool(status["age_s"] > STALE_AFTER_S)
