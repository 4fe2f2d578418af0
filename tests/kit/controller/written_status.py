"""The status file of a controller that has lived through a story."""

import json
import time
from pathlib import Path

from kit.controller.story import after
from penstock.controller.core.snapshot import snapshot


def written(folder: Path, *lines: str, age_s: float = 0.0, has_ended: bool = False) -> list[str]:
    """Run a controller through the story's lines and write its status; returns the flags."""
    teller = after(*lines)
    assert teller.state is not None
    unix_ms = round((time.time() - age_s) * 1000)
    status = snapshot(teller.state, unix_ms, is_degraded=False)
    status["has_ended"] = has_ended
    (folder / "status.json").write_text(json.dumps(status), encoding="utf-8")
    return ["--set", f"controller.directory={folder}"]
