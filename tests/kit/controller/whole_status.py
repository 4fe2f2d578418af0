"""A status as a controller writes it, with whatever a test is about in place of the rest."""

import json
import time
from typing import Any

from kit.controller.story import TWO_CONSUMERS, after
from kit.controller.story_state import state_of
from penstock.controller.core.snapshot import snapshot


def whole_status(
    *lines: str, age_s: float = 0.0, is_degraded: bool = False, **more: object
) -> dict[str, Any]:
    """After these lines of a story, of two consumers if there are none; `more` replaces fields."""
    unix_ms = round((time.time() - age_s) * 1000)
    seen = snapshot(state_of(after(*(lines or TWO_CONSUMERS))), unix_ms, is_degraded=is_degraded)
    found: dict[str, Any] = json.loads(json.dumps({**seen, **more}))
    return found
