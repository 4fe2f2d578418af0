"""Structured log events on stderr: a name, a level, a time, and keys with values.

`text` is for people at a terminal, `json` for programs (one event per line). Values of type Secret
print as `***`, as they do everywhere.
"""

import logging
import sys
from typing import Any, Literal, cast

import structlog
from structlog.typing import FilteringBoundLogger, Processor


def configure_logs(level: str, form: Literal["text", "json"]) -> None:
    last: Processor = (
        structlog.processors.JSONRenderer(default=str)
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=_on_stderr,
        cache_logger_on_first_use=False,
    )


def _on_stderr(*_: Any) -> structlog.PrintLogger:
    """Look stderr up for every event: it may have been replaced, and the old one closed."""
    return structlog.PrintLogger(sys.stderr)


def get_logger(**context: Any) -> FilteringBoundLogger:
    """A logger whose every event carries `context`."""
    return cast("FilteringBoundLogger", structlog.get_logger(**context))
