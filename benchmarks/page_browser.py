"""The page with 10,000 partitions and 500 consumers, in a real Chromium.

Measures the first paint, when the figures are there, how long a view takes to open, the memory of
the tab, and how much of a core the browser needs while the page is watched. The server and its
made-up group run in a process of their own, and are not counted. Targets: a first paint within a
second, and at most 5 % of a core while watched; the exit code is 1 where one is missed.

Run it from the checkout: `.venv/bin/python benchmarks/page_browser.py`
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

ROOT = Path(__file__).parents[1]
CONSUMERS, PARTITIONS = 500, 10_000
WATCHED_S = 30
OPENED = 5
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAINT_S_MAX = 1.0
SHARE_MAX = 0.05
VIEWS = ("partitions", "decisions", "plan", "group")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def processor_s(processes: set[int]) -> float:
    """The time that these processes have had, in seconds."""
    total = 0
    for process in processes:
        try:
            fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2]
        except OSError:
            continue
        total += sum(int(one) for one in fields.split()[11:13])
    return total / TICKS_PER_S


def browser_processes() -> set[int]:
    """All descendants of this process whose program is Chromium."""
    parents: dict[int, int] = {}
    chromium: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, fields = (
                (folder / "stat").read_text(encoding="utf-8").partition("(")[2].rpartition(")")
            )
        except OSError:
            continue
        parents[int(folder.name)] = int(fields.split()[1])
        if name.startswith("chrom"):
            chromium.add(int(folder.name))
    return {one for one in chromium if _descends(one, os.getpid(), parents)}


def _descends(process: int, ancestor: int, parents: dict[int, int]) -> bool:
    while process > 1:
        if process == ancestor:
            return True
        process = parents.get(process, 0)
    return False


def first_look(browser: Browser, address: str) -> tuple[float, float]:
    """Seconds to the first paint with content, and until the figures are there."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    begun_s = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_selector("[data-tile=written]")
    there_s = time.perf_counter() - begun_s
    paint_ms = page.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
    )
    page.close()
    return paint_ms / 1000, there_s


def view_s(page: Page, view: str) -> float:
    """Seconds from the click on a view until its rows are there."""
    rows = {
        "partitions": "#view-partitions tbody tr",
        "decisions": "#view-decisions .decision",
        "plan": "#view-plan .plan-row",
        "group": "#view-group .chip",
    }[view]
    begun_s = time.perf_counter()
    page.locator(f"#tabs [data-view={view}]").click()
    page.wait_for_selector(rows)
    return time.perf_counter() - begun_s


def metrics(session: CDPSession) -> dict[str, float]:
    answer: dict[str, Any] = session.send("Performance.getMetrics")
    return {one["name"]: one["value"] for one in answer["metrics"]}


def watched(page: Page) -> float:
    """The share of a core that the whole browser needed."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.wait_for_timeout(3_000)  # what belongs to the opening is over
    processes = browser_processes()
    before, before_s = metrics(session), processor_s(processes)
    begun_s = time.monotonic()
    page.wait_for_timeout(WATCHED_S * 1_000)
    took_s = time.monotonic() - begun_s
    after, after_s = metrics(session), processor_s(processes)
    session.send("HeapProfiler.collectGarbage")
    heap = metrics(session)["JSHeapUsedSize"] / 1e6
    share = (after_s - before_s) / took_s
    page_share = (after["TaskDuration"] - before["TaskDuration"]) / took_s
    say(f"watched for {took_s:.0f} s:")
    say(f"  the page's own thread    {page_share:6.1%} of a core")
    say(f"  all of the browser       {share:6.1%} of a core")
    say(f"  memory of the tab        {heap:6.1f} MB of JavaScript, {after['Nodes']:.0f} nodes")
    return share


def main() -> int:
    chromium = shutil.which("chromium")
    if chromium is None:
        say("no chromium here: on Debian run setup/test_programs.sh as root")
        return 0
    server = subprocess.Popen(
        [sys.executable, "-m", "kit.page.page_server", str(CONSUMERS), str(PARTITIONS), "3"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                [os.environ.get("PYTHONPATH", str(ROOT / "src")), str(ROOT / "tests")]
            ),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    if server.stdin is None or server.stdout is None:
        raise AssertionError("it was started with pipes")
    try:
        address = server.stdout.readline().strip()
        say(f"{PARTITIONS:,} partitions, {CONSUMERS} consumers, {OPENED} times opened")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            looks = [first_look(browser, address) for _ in range(OPENED)]
            paint_s = median(one[0] for one in looks)
            say(f"first paint                {paint_s:6.2f} s (median)")
            say(f"figures are there          {median(one[1] for one in looks):6.2f} s (median)")
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(address)
            page.wait_for_selector(".chip")
            for view in VIEWS:
                say(f"view {view:21} {view_s(page, view):6.2f} s")
            page.screenshot(path=ROOT / "out" / "page-large-group.png", full_page=True)
            share = watched(page)
            browser.close()
    finally:
        server.stdin.close()
        server.wait(timeout=20)
    return int(paint_s > PAINT_S_MAX or share > SHARE_MAX)


if __name__ == "__main__":
    sys.exit(main())
