"""The live page in a real browser, with its real server: what it shows, and how it can be used."""

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, Route, expect

from kit.page.browser import DESKTOP, PHONE, Opener, Quiet, keep_picture
from kit.page.made_up_group import MadeUpGroup
from kit.page.page_server import PageServer

pytestmark = pytest.mark.browser
NARROWEST = {"width": 360, "height": 740}
NAMELESS = """() => [...document.querySelectorAll('button, a, input, select, [role=slider]')]
  .filter((one) => one.checkVisibility())
  .filter((one) => !(one.ariaLabel || one.textContent.trim() || one.labels?.length || one.title))
  .map((one) => one.outerHTML)"""

# The contrast of every visible text with the nearest opaque background behind it.
LOW_CONTRAST = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((one) => one / 255)
    .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, place) => sum + one * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const rgb = parse(getComputedStyle(one).backgroundColor);
      if (rgb.length === 3 || rgb[3] === 1) return rgb;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const element of document.body.querySelectorAll('*')) {
    const hasText = [...element.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    if (!hasText || !element.checkVisibility() || element.disabled) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(parse(style.color)), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const isLarge = parseFloat(style.fontSize) >= 24;
    if (contrast < (isLarge ? 3 : 4.5)) low.push([element.className, element.textContent]);
  }
  return low;
}"""


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    """A group that stands still a few seconds after a plan: partitions are on their way."""
    with PageServer() as running:
        yield running


def ready(page: Page) -> Page:
    """The page, when its figures and its bars are there."""
    expect(page.locator("#link")).to_have_text("live")
    expect(page.locator(".chip").first).to_be_attached()
    return page


def asked(page: Page, path: str) -> dict[str, Any]:
    """What the API answers to the page's own browser."""
    answer: dict[str, Any] = page.evaluate("(path) => fetch(path).then((got) => got.json())", path)
    return answer


def test_the_figures_are_those_of_the_api(server: PageServer, open_page: Opener) -> None:
    """Written, consumers, partitions, bars and conditions agree with what the server answers."""
    page = ready(open_page(server.address))
    status = asked(page, "v1/status")["status"]
    tile = page.locator("[data-tile=written] .tile-value")
    expect(tile).to_have_text(f"{status['speed']['written_bytes_per_s'] / 1e6:.3g} MB/s")
    consumers = page.locator("[data-tile=consumers]")
    expect(consumers.locator(".tile-value")).to_have_text(str(status["consumers"]["running"]))
    expect(consumers).to_contain_text(f"needed {status['consumers']['needed']}")
    expect(consumers).to_contain_text(f"fewest possible {status['consumers']['fewest_possible']}")
    expect(page.locator("[data-tile=partitions] .tile-value")).to_have_text("60")
    expect(page.locator(".chip[data-key]")).to_have_count(60)
    expect(page.locator("#packing .chip.moving")).to_have_count(status["partitions"]["moving"])
    for condition in status["conditions"]:
        expect(page.locator("#conditions")).to_contain_text(condition["reason"])
    expect(page.locator("#doing-words")).to_contain_text(status["now"]["sentence"])


def test_a_bar_is_as_long_as_its_partitions_are_fast(server: PageServer, open_page: Opener) -> None:
    """Widths are in proportion to speeds, and the mark of the capacity is where it belongs."""
    page = ready(open_page(server.address))
    answer = asked(page, "v1/consumers?with=partitions")
    row = next(one for one in answer["consumers"] if one["partitions"] > 3)
    boxes = {
        f"{one['topic']}-{one['partition']}": one["load_bytes_per_s"] for one in row["segments"]
    }
    fastest = max(boxes, key=lambda name: boxes[name])
    chip = page.locator(f'.chip[data-key="{fastest}"]').bounding_box()
    line = page.locator(f'.packing-row:has([data-consumer="{row["consumer"]}"])')
    track = line.locator(".packing-track").bounding_box()
    mark = line.locator(".mark-capacity").bounding_box()
    assert chip is not None
    assert track is not None
    assert mark is not None
    scale = (mark["x"] - track["x"]) / row["capacity_bytes_per_s"]
    assert chip["width"] == pytest.approx(boxes[fastest] * scale, abs=3)


@dataclass(frozen=True)
class Look:
    name: str
    viewport: dict[str, int]
    colours: str


LOOKS = [
    Look("desktop-light", DESKTOP, "light"),
    Look("desktop-dark", DESKTOP, "dark"),
    Look("phone-light", PHONE, "light"),
    Look("phone-dark", PHONE, "dark"),
]


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
def test_pictures_are_kept_for_people_to_look_at(
    server: PageServer, open_page: Opener, look: Look
) -> None:
    """Desktop and phone, light and dark: out/page; the page never scrolls sideways."""
    page = ready(open_page(server.address, look.viewport, color_scheme=look.colours))
    expect(page.locator("#recent .decision").first).to_be_visible()
    for view in ("group", "partitions", "decisions", "plan", "tables"):
        page.locator(f"#tabs [data-view={view}]").click()
        expect(page.locator(f"#view-{view}")).to_be_visible()
        if view == "partitions":
            expect(page.get_by_role("button", name="clicks-0", exact=True)).to_be_visible()
        if view == "decisions":
            expect(page.locator("#view-decisions .decision").first).to_be_visible()
        if view == "plan":
            expect(page.get_by_text("No packing needs fewer than")).to_be_visible()
        if view == "tables":
            expect(page.get_by_role("button", name="clicks", exact=True)).to_be_visible()
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= look.viewport["width"], view
        keep_picture(page, f"{view}-{look.name}")


def test_the_narrowest_phone_needs_no_sideways_scrolling(
    server: PageServer, open_page: Opener
) -> None:
    """At 360 pixels, in every view and with a story open."""
    page = ready(open_page(server.address, NARROWEST))
    for hash_ in ("#/partitions", "#/decisions", "#/plan", "#/tables", "#/group/consumer/5"):
        page.evaluate("(hash) => { location.hash = hash; }", hash_)
        expect(
            page.locator("#view-group" if "group" in hash_ else f"#view-{hash_[2:]}")
        ).to_be_visible()
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROWEST["width"], hash_


def test_names_made_of_markup_are_shown_as_text(open_page: Opener) -> None:
    """Wherever somebody else's words are drawn, tags in them make no elements and run nothing."""
    bad = "<img src=x onerror=document.title=1>"
    group = MadeUpGroup(consumers=4, partitions=8)
    with PageServer(group, seconds_before=20, table=bad) as server:
        partitions = {
            name.replace("orders", bad): one for name, one in server.snapshot["partitions"].items()
        }
        consumers = [
            {
                **one,
                "partitions": [name.replace("orders", bad) for name in one["partitions"]],
                "occupation": f"it says {bad}",
            }
            for one in server.snapshot["consumers"]
        ]
        history = [
            {**one, "explanation": f"{one['explanation']} {bad}"}
            for one in server.snapshot["history"]
        ]
        server.change(
            partitions=partitions,
            consumers=consumers,
            history=history,
            parked={f"{bad}-0": f"why {bad}"},
            parked_details={f"{bad}-0": f"detail {bad}"},
            pauses=[{"direction": bad, "reason": f"paused {bad}"}],
            reason={"code": bad, "explanation": f"because {bad}"},
            conditions=[{"condition": "stopped", "reason": f"{bad}-0: <script>alert(1)</script>"}],
        )
        page = ready(open_page(server.address))
        expect(page.locator("#conditions")).to_contain_text(f"{bad}-0: <script>")
        expect(page.locator("#packing-key")).to_contain_text(bad)
        for words in (f"Why: because {bad}", f"Paused ({bad}): paused {bad}"):
            expect(page.locator("#doing-words")).to_contain_text(words)
        page.locator("#tabs [data-view=partitions]").click()
        link = page.get_by_role("button", name=f"{bad}-1", exact=True)
        link.click()
        expect(page.locator("#panel-title")).to_have_text(f"Partition {bad}-1")
        for kind, name, words in (
            ("partition", f"{bad}-0", f"why {bad}: detail {bad}"),
            ("consumer", str(consumers[0]["consumer"]), f"it says {bad}"),
            ("table", bad, "below a quarter of"),
        ):
            page.evaluate("(hash) => { location.hash = hash; }", f"#/tables/{kind}/{quote(name)}")
            expect(page.locator("#panel-title")).to_contain_text(name)
            expect(page.locator("#panel")).to_contain_text(words)
        expect(page.locator("#view-tables")).to_contain_text(bad)
        assert page.locator("img").count() == 0
        assert page.title() == "shop · Penstock"
        page.close()  # before its server ends


def test_the_story_of_a_partition_is_opened_by_keyboard(
    server: PageServer, open_page: Opener
) -> None:
    """Arrows go from partition to partition, Enter opens, Escape closes and gives focus back."""
    page = ready(open_page(server.address))
    page.locator('.chip[tabindex="0"]').focus()
    first = page.evaluate("document.activeElement.dataset.key")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    key = page.evaluate("document.activeElement.dataset.key")
    assert key != first
    expect(page.locator("#tip")).to_contain_text(key)
    page.keyboard.press("Enter")
    expect(page.locator("#panel-title")).to_have_text(f"Partition {key}")
    expect(page.locator("#panel .facts")).to_contain_text("Next offset for the lake")
    keep_picture(page, "story-partition")
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()
    assert page.evaluate("document.activeElement.dataset.key") == key


def test_a_story_has_an_address_of_its_own(server: PageServer, open_page: Opener) -> None:
    """The address opens the story of a consumer, with its partitions and its decisions."""
    page = open_page(f"{server.address}#/group/consumer/3")
    expect(page.locator("#panel-title")).to_have_text("Consumer 3")
    expect(page.locator("#panel")).to_contain_text("consumer 3 is started")
    page.locator("#panel .part-list .link").first.click()
    expect(page.locator("#panel-title")).to_contain_text("Partition")


def test_a_table_has_its_story(server: PageServer, open_page: Opener) -> None:
    """Files, log, checkpoints and what compaction did, as the API has them."""
    page = open_page(f"{server.address}#/tables")
    for place, words in ((0, "9 joins, the last 10 s ago"), (-1, "Compactionnever")):
        one = asked(page, "v1/tables")["tables"][place]
        page.get_by_role("button", name=one["table"], exact=True).click()
        expect(page.locator("#panel-title")).to_have_text(f"Table {one['table']}")
        facts = page.locator("#panel .facts")
        for known in (
            words,
            f"Files{one['files']:,}",
            f"Small files{one['small_files']:,} below a quarter of 134\u00a0MB",
            f"Log since the newest checkpoint{one['entries_since_checkpoint']:,} versions",
            f"Versions in the log{one['log_entries']:,}",
            "at version 750, 60\u00a0s ago",
        ):
            expect(facts).to_contain_text(known)
        keep_picture(page, f"story-table{place}")
    page.goto(f"{server.address}#/tables/table/%zz")
    expect(page.locator("#panel")).to_contain_text("There is no table %zz now.")


def test_time_lines_are_read_and_zoomed_by_keyboard(server: PageServer, open_page: Opener) -> None:
    """The cursor tells values in words, and all time lines show the same stretch."""
    page = ready(open_page(server.address))
    chart = page.get_by_role("slider", name="Consumers: moment")
    chart.focus()
    page.keyboard.press("ArrowLeft")
    expect(chart).to_have_attribute("aria-valuetext", re.compile("running 11, needed 1[01]"))
    before = chart.get_attribute("aria-valuetext")
    page.keyboard.press("Shift+ArrowLeft")
    expect(chart).not_to_have_attribute("aria-valuetext", before or "")
    expect(page.get_by_role("button", name="15 min")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("+")
    expect(page.get_by_role("button", name="15 min")).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("Home")
    expect(page.get_by_role("button", name="all", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )


def test_a_key_before_the_first_figures_shows_the_newest(
    server: PageServer, open_page: Opener
) -> None:
    """The cursor is not left at the begin of time."""
    page = open_page(server.address)
    held: list[Route] = []
    is_let_go = threading.Event()

    def hold(route: Route) -> None:
        if is_let_go.is_set():
            route.continue_()
        else:
            held.append(route)

    page.route("**/v1/timeline*", hold)
    page.reload()
    chart = page.get_by_role("slider", name="Consumers: moment")
    chart.press("ArrowLeft")
    expect(chart).to_have_attribute("aria-valuetext", re.compile(":"))
    expect(page.locator("#link")).to_have_text("live")
    is_let_go.set()
    for one in held:
        one.continue_()
    expect(chart).to_have_attribute("aria-valuetext", re.compile("running 11, needed 1[01]"))


def test_decisions_are_filtered(server: PageServer, open_page: Opener) -> None:
    """By kind and by words; the count follows."""
    page = open_page(f"{server.address}#/decisions")
    expect(page.locator("#view-decisions .decision").first).to_be_visible()
    page.get_by_label("Kind").select_option("fault")
    others = page.locator('#view-decisions .decision:not([data-kind="fault"])')
    expect(others).to_have_count(0)
    expect(page.locator("#view-decisions .decision").first).to_be_visible()
    page.get_by_label("Words in it").fill("stock.changes-14")
    expect(page.locator("#view-decisions .decision")).to_have_count(1)
    page.get_by_label("Words in it").fill("no such words")
    expect(page.get_by_text("No decision fits these filters.")).to_be_visible()


def test_the_theme_can_be_chosen_and_is_remembered(server: PageServer, open_page: Opener) -> None:
    """System, light, dark; after a reload it is still dark."""
    page = ready(open_page(server.address))
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.locator("#theme").click()
    page.locator("#theme").click()
    assert page.evaluate(colour) != light
    page.reload()
    assert ready(page).evaluate(colour) != light


def test_less_motion_is_respected(server: PageServer, open_page: Opener) -> None:
    """Where the system asks for less motion, nothing travels."""
    page = ready(open_page(server.address, reduced_motion="reduce"))
    duration = page.evaluate(
        "(() => { const chip = document.querySelector('.chip'); chip.classList.add('travels');"
        " return getComputedStyle(chip).transitionDuration; })()"
    )
    assert duration in {"0s", "0s, 0s"}


def test_a_silent_controller_and_a_lost_server_are_told_apart(
    open_page: Opener, quiet: Quiet
) -> None:
    """The page says which of the two it is, how old its figures are, and goes on by itself."""
    with PageServer(MadeUpGroup(consumers=4, partitions=12), seconds_before=30) as server:
        page = ready(open_page(server.address))
        server.pace = "silent"
        lost = page.locator("#lost")
        expect(lost).to_contain_text("The controller has not reported for", timeout=90_000)
        expect(lost).to_contain_text("old.")
        server.pace = "stands"
        expect(lost).to_be_hidden()
        quiet.is_server_gone = True
        server.end()
        expect(lost).to_contain_text("The server of this page does not answer.", timeout=90_000)
        expect(lost).to_contain_text("These figures are")
        keep_picture(page, "server-lost")
        port = server.port
    with PageServer(MadeUpGroup(consumers=4, partitions=12), seconds_before=5, port=port):
        expect(lost).to_be_hidden()
        expect(page.locator("#link")).to_have_text("live")


def test_everything_has_a_name_and_enough_contrast(server: PageServer, open_page: Opener) -> None:
    """Buttons, links, inputs and landmarks are named; text has the contrast of WCAG AA."""
    for colours in ("light", "dark"):
        page = ready(open_page(server.address, color_scheme=colours))
        assert page.evaluate(NAMELESS) == []
        assert page.evaluate(LOW_CONTRAST) == []
