"""The head of a snapshot: a settings file that a group wrote for itself, with where all comes from.

# penstock-snapshot {"file": "/etc/penstock.yaml", "origins": {"packing.capacity": "..."}}
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import SettingsError
from penstock.model.json_text import read_json
from penstock.settings.tree import OptionPath

_MARK = "# penstock-snapshot "


@dataclass(frozen=True, slots=True)
class SnapshotMark:
    # The file that was in force; None when there was none.
    file: Path | None
    origins: Mapping[OptionPath, str]

    def line(self) -> str:
        content = {
            "file": None if self.file is None else str(self.file),
            "origins": {".".join(path): text for path, text in sorted(self.origins.items())},
        }
        return f"{_MARK}{json.dumps(content, sort_keys=True)}\n"


def snapshot_mark(text: str) -> SnapshotMark | None:
    """The mark of a snapshot; None for the file of a person."""
    if not text.startswith(_MARK):
        return None
    try:
        content = read_json(text.partition("\n")[0].removeprefix(_MARK))
        file = content["file"]
        origins = {tuple(str(n).split(".")): str(o) for n, o in content["origins"].items()}
    except (ValueError, LookupError, TypeError, AttributeError):
        raise SettingsError(
            "The snapshot of the settings is damaged.", remedy="Start the group again."
        ) from None
    return SnapshotMark(None if file is None else Path(file), origins)
