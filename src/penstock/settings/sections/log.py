"""What the processes write to stderr."""

from typing import Literal

from penstock.settings.sections.base import Section, option


class LogSettings(Section):
    """What the processes write to stderr."""

    level: Literal["debug", "info", "warning", "error"] = option(
        "info", "The least important event that is written."
    )
    format: Literal["text", "json"] = option(
        "text", "`text` for people, `json` for programs: one event a line."
    )
