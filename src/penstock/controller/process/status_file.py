"""The files behind `penstock status` and `penstock settings`: when they are written, and how."""

import json
from pathlib import Path
from typing import Any

# How often the file behind `penstock status` is written. It takes at most a fiftieth of a core, but
# is never as old as what counts as silence there.
STATUS_EVERY_S = 1.0
STATUS_EVERY_S_MAX = 4.0
STATUS_SHARE_OF_A_CORE = 1 / 50
STATUS_NAME = "status.json"


def status_pause_s(took_s: float) -> float:
    """How long after one status the next one is due: later in a large group, where it is dear."""
    return min(STATUS_EVERY_S_MAX, max(STATUS_EVERY_S, took_s / STATUS_SHARE_OF_A_CORE))


def write_status(file: Path, status: dict[str, Any], log: Any) -> None:
    partial = file.with_suffix(".partial")
    try:
        partial.write_text(json.dumps(status), encoding="utf-8")
        partial.replace(file)
    except OSError as error:
        log.warning("status_not_written", why=str(error))
