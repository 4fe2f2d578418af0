"""A command as a person would have typed it, for messages about another process."""

import shlex
from collections.abc import Sequence
from pathlib import Path


def command_line(arguments: Sequence[str]) -> str:
    """`python -m penstock` is shown as `penstock`. Secrets are never arguments."""
    program = Path(arguments[0]).name if arguments else ""
    program = "penstock" if program == "__main__.py" else program
    text = shlex.join([program, *arguments[1:]])
    return "".join(one if one.isprintable() else "?" for one in text)
