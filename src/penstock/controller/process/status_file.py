"""The files behind `penstock status` and `penstock settings`: when they are written, and how."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.controller.core.snapshot import question
from penstock.controller.core.state import State
from penstock.deployment import DeploymentTemplate

# How often the status is written. It takes at most a fiftieth of a core, but is never as old as
# what counts as silence.
STATUS_EVERY_S = 1.0
STATUS_EVERY_S_MAX = 4.0
STATUS_SHARE_OF_A_CORE = 1 / 50
STATUS_NAME = "status.json"
# In a group with more partitions than this, what the packer would be asked is made anew every few
# seconds only, and whenever another plan is made: it is a third of what a status costs.
QUESTION_PARTITIONS = 2_000
QUESTION_EVERY_MS = 15_000
# Without the spaces, which would be an eighth of it; a status has no circles to look for.
_ENCODER = json.JSONEncoder(separators=(",", ":"), check_circular=False)


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


@dataclass(slots=True)
class KeptQuestion:
    """What the packer would be asked, as text; kept for a while in a large group. Mutable."""

    _text: str = ""
    _of: tuple[int, str] | None = None
    _at_ms: int = 0

    def text(self, state: State) -> str:
        now_of = (state.plan_number, state.phase.value)
        is_large = len(state.write_speeds) > QUESTION_PARTITIONS
        is_old = state.now_ms - self._at_ms >= QUESTION_EVERY_MS
        if not is_large or is_old or now_of != self._of:
            self._text = status_text(question(state))
            self._of, self._at_ms = now_of, state.now_ms
        return self._text


def status_text(status: dict[str, Any]) -> str:
    return _ENCODER.encode(status)


def with_part(text: str, name: str, part_text: str) -> str:
    """The JSON object with one more part, which is JSON already."""
    return f'{text[:-1]},"{name}":{part_text}}}'


def write_status(file: Path, text: str, log: Any) -> None:
    """A full disk does not end the controller."""
    partial = file.with_suffix(".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(file)
    except OSError as error:
        log.warning("status_not_written", why=str(error))
