"""A file for Prometheus that says where a process on this machine can be scraped.

Local processes come and go and share one machine, so each takes any free port of the loopback
address and writes it to a file of its own in a folder. Prometheus reads such a folder by itself
(`file_sd_configs`) and notices every change.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import PenstockError


@contextmanager
def named_target(folder: Path, name: str, port: int) -> Iterator[Path]:
    """The file exists between enter and exit; one that a killed process left is replaced."""
    file = folder / f"{name}.json"
    partial = folder / f".{name}.partial"
    content = [{"targets": [f"127.0.0.1:{port}"], "labels": {"instance": name}}]
    text = json.dumps(content) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        partial.replace(file)
    except OSError as error:
        raise PenstockError(
            f"The file {file} for Prometheus cannot be written: {error.strerror}.",
            remedy="Name another folder in telemetry.metrics_targets, or none.",
        ) from error
    try:
        yield file
    finally:
        # Unless a newer process of that name has written its own.
        if _is_ours(file, text):
            file.unlink(missing_ok=True)


def _is_ours(file: Path, text: str) -> bool:
    try:
        return file.read_text(encoding="utf-8") == text
    except (OSError, ValueError):
        return False
