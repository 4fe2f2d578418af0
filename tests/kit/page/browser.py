"""Pages in a real Chromium that must stay quiet: no console error, no request to elsewhere."""

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page

CHROMIUM = shutil.which("chromium")
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
OUT = Path(__file__).parents[3] / "out" / "page"

Opener = Callable[..., Page]


class Quiet:
    """What a page must not do: collected while it is open, looked at when the test ends."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        # A test that ends the server expects failed requests.
        self.is_server_gone = False

    def watch(self, page: Page) -> None:
        page.on("console", lambda one: self._heard(one.type, one.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda one: self._asked(one.url))

    def _heard(self, kind: str, text: str) -> None:
        is_expected = self.is_server_gone and "net::ERR" in text
        if kind in {"error", "warning"} and not is_expected:
            self.complaints.append(text)

    def _asked(self, address: str) -> None:
        parts = urlsplit(address)
        if parts.scheme not in {"data", "blob", "file"} and parts.hostname != "127.0.0.1":
            self.foreign.append(address)


def keep_picture(page: Page, name: str) -> None:
    """Keep what a test has seen, for people to look at: out/page/NAME.png."""
    OUT.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=OUT / f"{name}.png", full_page=True)
