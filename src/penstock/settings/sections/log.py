"""The log that the processes write to stderr."""

from typing import Literal

from penstock.settings.sections.base import Section, option


class LogSettings(Section):
    """The log that the processes write to stderr."""

    level: Literal["debug", "info", "warning", "error"] = option(
        "info", "The lowest level of events that are logged."
    )
    format: Literal["text", "json"] = option(
        "text", "`text` for people, `json` for programs; one event per line."
    )
