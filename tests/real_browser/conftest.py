"""A real Chromium for the tests of the page."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from kit.page.browser import CHROMIUM, DESKTOP, Opener, Quiet

# A busy machine needs its time; a test that passes waits no longer than it must.
expect.set_options(timeout=60_000)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests; without Chromium they are skipped with a line that says so."""
    if CHROMIUM is None:
        pytest.skip("no chromium here: on Debian run setup/test_programs.sh as root")
    with sync_playwright() as playwright:
        # As root, Chromium runs only without its sandbox; it opens our own page alone.
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def quiet() -> Iterator[Quiet]:
    watched = Quiet()
    yield watched
    assert watched.complaints == []
    assert watched.foreign == []


@pytest.fixture
def open_page(browser: Browser, quiet: Quiet) -> Iterator[Opener]:
    """Opens an address in a window of its own: `open_page(address, PHONE, color_scheme="dark")`."""
    contexts: list[BrowserContext] = []

    def opened(address: str, viewport: dict[str, int] | None = None, **options: Any) -> Page:
        options.setdefault("color_scheme", "light")
        context = browser.new_context(viewport=viewport or DESKTOP, **options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        quiet.watch(page)
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
