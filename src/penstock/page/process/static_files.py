"""The page's own files, read once at the start.

A path is only ever a key of this list, so no path leads out of the folder.
"""

from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

_KINDS = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "ico": "image/x-icon",
    "js": "text/javascript; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml",
    "woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    content: bytes
    kind: str
    tag: str


def static_files() -> dict[str, StaticFile]:
    """By name; those in folders with a slash."""
    folder = files("penstock.page") / "static"
    return dict(_files_in(folder, "")) if folder.is_dir() else {}


def texts_of(found: dict[str, StaticFile]) -> dict[str, str]:
    """Those that are text, for the page as one file."""
    return {
        name: one.content.decode("utf-8")
        for name, one in found.items()
        if one.kind.startswith("text/")
    }


def _files_in(folder: Traversable, before: str) -> list[tuple[str, StaticFile]]:
    found: list[tuple[str, StaticFile]] = []
    for one in folder.iterdir():
        name = f"{before}{one.name}"
        if one.is_dir():
            found += _files_in(one, f"{name}/")
            continue
        kind = _KINDS.get(one.name.rpartition(".")[2])
        if kind is not None:
            content = one.read_bytes()
            tag = f'"{sha256(content).hexdigest()[:24]}"'
            found.append((name, StaticFile(content, kind, tag)))
    return found
