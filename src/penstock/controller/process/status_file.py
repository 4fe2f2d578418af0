"""The files behind `penstock status` and `penstock settings`: when they are written, and how."""

import json
from pathlib import Path
from typing import Any

from penstock.deployment import DeploymentTemplate

# How often the status is written. It takes at most a fiftieth of a core, but is never as old as
# what counts as silence.
STATUS_EVERY_S = 1.0
STATUS_EVERY_S_MAX = 4.0
STATUS_SHARE_OF_A_CORE = 1 / 50
STATUS_NAME = "status.json"


def status_pause_s(took_s: float) -> float:
    """How long after one status the next one is due: later in a large group, where it is dear."""
    return min(STATUS_EVERY_S_MAX, max(STATUS_EVERY_S, took_s / STATUS_SHARE_OF_A_CORE))


def deployment_shown(template: DeploymentTemplate) -> dict[str, Any]:
    """How consumers are created now."""
    failed, planned = template.failed_digest, template.pod_plan.get("settings")
    return {
        "version": template.version,
        "image": template.image or (planned.get("image") if isinstance(planned, dict) else None),
        "settings": template.settings_file,
        # What this controller was started with was rolled out, and rolled back.
        "is_rolled_back": bool(failed) and failed != template.settings_digest,
    }


def write_status(file: Path, status: dict[str, Any], log: Any) -> str:
    """Returns what it wrote, or would have written to a disk that is not full."""
    text = json.dumps(status)
    partial = file.with_suffix(".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(file)
    except OSError as error:
        log.warning("status_not_written", why=str(error))
    return text
