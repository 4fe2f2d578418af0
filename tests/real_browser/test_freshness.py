"""How fresh the lake is, on the page in a real browser: the tile and the time line."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from kit.page.browser import Opener
from kit.page.page_server import PageServer

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def asked(page: Page, path: str) -> dict[str, Any]:
    """What the API answers to the page's own browser."""
    answer: dict[str, Any] = page.evaluate("(path) => fetch(path).then((got) => got.json())", path)
    return answer


@pytest.mark.parametrize(
    ("freshness_s", "at_least_s", "label", "value"),
    [
        (12.0, 12.0, "Freshness", "12 s"),
        (None, 312.0, "Freshness", "at least 5 min 12 s"),
        (None, None, "Behind", "9.9 s"),
    ],
)
def test_the_tile_of_freshness_is_what_the_api_says(
    open_page: Opener,
    freshness_s: float | None,
    at_least_s: float | None,
    label: str,
    value: str,
) -> None:
    """Where it is not known, what is certain of it; of an older controller, the backlog as time."""
    with PageServer() as running:
        running.change(freshness_s=freshness_s, freshness_at_least_s=at_least_s, behind_s=9.9)
        page = open_page(running.address)
        expect(page.locator("#link")).to_have_text("live")
        tile = page.locator("[data-tile=behind]")
        expect(tile.locator(".tile-label")).to_have_text(label)
        expect(tile.locator(".tile-value")).to_have_text(value)
        status = asked(page, "v1/status")["status"]
        found = status["freshness_s"], status["freshness_at_least_s"]
        assert found == (freshness_s, at_least_s)
        drawn = None
        while drawn != (freshness_s, at_least_s):  # a point is the mean of its second
            page.wait_for_timeout(100)
            line = asked(page, "v1/timeline")["timeline"]
            drawn = line["freshness_s"][-1], line["freshness_at_least_s"][-1]
        page.get_by_label("Shown").select_option("freshness")
        page.close()  # before its server ends
