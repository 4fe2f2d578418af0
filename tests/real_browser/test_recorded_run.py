"""A run in one HTML file: it opens without a server, and can be played."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from kit.page.browser import PHONE, Opener, keep_picture
from kit.page.made_up_group import LOST_AT_S, MOVE_AT_S, REPLACED_AT_S
from kit.page.made_up_run import made_up_run
from kit.program import invoked
from penstock.page.process.run_file import write_run

pytestmark = pytest.mark.browser
EVERY_S = 2


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("run") / "run.html"
    run = made_up_run(MOVE_AT_S + 40, EVERY_S)
    write_run(path, run)
    return path.as_uri()


def test_the_file_shows_the_end_of_the_run_and_what_it_came_to(
    run_file: str, open_page: Opener
) -> None:
    """Figures, bars, decisions, tables and results are there without any request."""
    page = open_page(run_file)
    expect(page.locator("#link")).to_have_text("recorded run")
    expect(page.get_by_text("records produced")).to_be_visible()
    expect(page.locator("[data-tile=consumers] .tile-value")).to_have_text("11")
    expect(page.locator(".chip").first).to_be_visible()
    expect(page.locator("#recent .decision").first).to_contain_text("plan done")
    keep_picture(page, "recorded-run")
    page.get_by_role("link", name="Tables").click()
    expect(page.get_by_text("needs care")).to_be_visible()
    page.get_by_role("link", name="Plan", exact=True).click()
    expect(page.get_by_text("No packing needs fewer than")).to_be_visible()


def test_the_slider_goes_back_to_the_moment_when_a_consumer_was_lost(
    run_file: str, open_page: Opener
) -> None:
    """Bars, decisions and sentences are those of that moment, and no later decision shows."""
    page = open_page(run_file)
    slider = page.get_by_label("Moment of the run")
    moment_s = (LOST_AT_S + REPLACED_AT_S) // 2
    slider.fill(str(moment_s * 1000 // 250 * 250))
    expect(page.locator("#recent .decision").first).to_contain_text("consumer fenced")
    expect(page.locator(".packing-status", has_text="silent for")).to_be_visible()
    expect(page.locator("#recent").get_by_text("plan done")).to_have_count(0)
    slider.fill(str((MOVE_AT_S + 6) * 1000))
    expect(page.locator("#packing .chip.moving").first).to_be_visible()


def test_a_partition_travels_to_the_bar_of_its_new_consumer(
    run_file: str, open_page: Opener
) -> None:
    """The same element is in another bar afterwards: it moved, and was not made anew."""
    page = open_page(run_file)
    slider = page.get_by_label("Moment of the run")
    slider.fill(str((MOVE_AT_S + 6) * 1000))
    moving = page.locator("#packing .chip.moving").first
    expect(moving).to_be_visible()
    key = moving.get_attribute("data-key")
    chip = page.locator(f'.chip[data-key="{key}"]')
    chip.evaluate(
        "(chip) => { chip.isTheSame = true;"
        " chip.addEventListener('transitionrun', () => { chip.hasTravelled = true; }); }"
    )
    before = chip.bounding_box()
    slider.fill(str((MOVE_AT_S + 30) * 1000))
    expect(page.locator("#packing .chip.moving")).to_have_count(0)
    page.wait_for_function("() => !document.querySelector('.chip.travels')")
    after = chip.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(before["y"] - after["y"]) > 20
    assert chip.evaluate("(chip) => chip.isTheSame")
    assert chip.evaluate("(chip) => chip.hasTravelled")


def test_play_goes_on_by_itself_and_ends_at_the_end(run_file: str, open_page: Opener) -> None:
    """On a phone, with the quickest speed."""
    page = open_page(run_file, PHONE)
    page.get_by_label("How quickly it is played").select_option("60")
    slider = page.get_by_label("Moment of the run")
    slider.fill(str((MOVE_AT_S - 30) * 1000))
    play = page.get_by_role("button", name="Play")
    # It lasts for a second: who gets no processor for as long would not see it.
    play.evaluate(
        "(play) => { window.names = []; new MutationObserver(() => names.push(play.textContent))"
        ".observe(play, { childList: true, characterData: true, subtree: true }); }"
    )
    play.click()
    page.wait_for_function("() => names.length >= 2")
    assert page.evaluate("names") == ["Pause", "Play"]
    expect(play).to_be_visible()
    assert slider.input_value() == slider.get_attribute("max")


def test_a_simulated_run_is_played_without_what_it_does_not_know(
    tmp_path: Path, open_page: Opener
) -> None:
    """It is compressed, counts its time from 0, and has neither backlog nor tables."""
    file = tmp_path / "wave.html"
    options = ("--generate", "wave", "--partitions", "60", "--measurements", "121", "--trigger")
    assert invoked("simulate", *options, "--export", str(file)).exit_code == 0
    assert 'type="application/zlib"' in file.read_text(encoding="utf-8")
    page = open_page(file.as_uri())
    expect(page.locator("#link")).to_have_text("simulated run")
    expect(page.get_by_role("heading", name="CHAIN: 60 partitions")).to_be_visible()
    expect(page.locator("#tiles .tile")).to_have_count(3)
    expect(page.get_by_role("link", name="Tables")).to_be_hidden()
    expect(page.get_by_text("Behind and carried")).to_be_hidden()
    expect(page.locator(".replay-time")).to_have_text("10 min")
    keep_picture(page, "simulated-run")
    slider = page.get_by_label("Moment of the run")
    slider.fill("0")
    expect(page.locator("#doing-words")).to_contain_text("Why: no consumer reads generated-0")
    expect(page.locator("#recent .decision")).to_have_count(3)
    consumers = page.locator("[data-tile=consumers] .tile-value").inner_text()
    expect(page.locator(".packing-row")).to_have_count(int(consumers))
    page.get_by_role("button", name="Play").click()
    expect(page.locator("#recent .decision")).not_to_have_count(3)
