"""A live group under a changing load, seen on its page in a real browser."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Page, expect

from kit.group.live_group import LiveGroup, busiest, made_group, working
from kit.page.browser import Opener, keep_picture
from penstock.jars import USUAL_SETS, fetch
from penstock.verification import carried_so_far

pytestmark = [
    pytest.mark.browser,
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(240),
]
TOPIC = "seen"
PARTITIONS = 4
READY_WITHIN_S = 120
SHOWN_WITHIN_MS = 5_000


@contextmanager
def served_page(live: LiveGroup) -> Iterator[str]:
    """`penstock page` with the group's settings; the address that it prints."""
    flags = live.group.arguments_of("monitor")[1:]
    command = [sys.executable, "-m", "penstock", "page", *flags]
    command += ["--set", "page.address=127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ) as running:
        try:
            for line in running.stderr or ():
                if found := re.search(r"http://\S+", line):
                    wait_until_ready(found.group())
                    yield found.group()
                    break
            else:
                raise AssertionError("the page did not start")
        finally:
            running.send_signal(signal.SIGTERM)


def wait_until_ready(address: str) -> None:
    """Wait until the group's state was read: before that, answers are 503."""
    end_s = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < end_s:
        with suppress(HTTPError), urlopen(f"{address}readyz") as answer:  # noqa: S310 -- our own
            assert answer.status == HTTPStatus.OK
            return
        time.sleep(0.1)
    raise AssertionError("the page did not become ready")


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveGroup]:
    for jar_set in USUAL_SETS:
        fetch(jar_set)
    with made_group(tmp_path, page__enabled="false") as group:
        yield LiveGroup(group)


def figure(page: Page, tile: str) -> str:
    return page.locator(f"[data-tile={tile}] .tile-value").inner_text().replace("\u00a0", " ")


def asked(page: Page, path: str) -> dict[str, Any]:
    answer: dict[str, Any] = page.evaluate("(path) => fetch(path).then((got) => got.json())", path)
    return answer


def test_the_page_follows_a_live_group(live: LiveGroup, open_page: Opener) -> None:
    """It grows, a consumer is killed, the lake catches up: the page shows each within seconds."""
    live.administration.create_topic(TOPIC, partitions=PARTITIONS)
    live.converged({TOPIC: PARTITIONS})
    with served_page(live) as address:
        page = open_page(address)
        expect(page.locator("#link")).to_have_text("live")
        with live.loading_meanwhile(f"{TOPIC}=120kB/s"):
            status = live.until(lambda one: working(one) >= 2, "two consumers at work")
            running = re.compile(r"^[2-4]$")
            expect(page.locator("[data-tile=consumers] .tile-value")).to_have_text(running)
            follows_the_api(page)
            victim = busiest(status)
            live.send(live.consumer_process(victim), signal.SIGKILL)
            killed = re.compile(rf"consumers? {victim}\b")
            faults = page.locator('#recent .decision[data-kind="fault"]')
            expect(faults.filter(has_text=killed).first).to_be_visible(timeout=SHOWN_WITHIN_MS)
            keep_picture(page, "live-group-killed")
        live.drained(TOPIC)
        shows_the_ledger(page, live)
        keep_picture(page, "live-group")
        page.close()  # before its server ends


def follows_the_api(page: Page) -> None:
    """The figures equal the API's within one refresh."""
    end_s = time.monotonic() + 60
    while time.monotonic() < end_s:
        before = asked(page, "v1/status")["status"]
        shown = figure(page, "written"), figure(page, "consumers")
        wanted = (
            f"{before['speed']['written_bytes_per_s'] / 1e3:.3g} kB/s",
            str(before["consumers"]["running"]),
        )
        if shown == wanted:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"{shown} is not {wanted}")


def shows_the_ledger(page: Page, live: LiveGroup) -> None:
    """The story of each partition ends at the offset that the lake has."""
    ledger = carried_so_far(live.group.settings, [TOPIC])
    for partition, end in ledger.items():
        page.goto(f"{page.url.partition('#')[0]}#/group/partition/{partition}")
        facts = page.locator("#panel .facts")
        expect(page.locator("#panel-title")).to_have_text(f"Partition {partition}")
        expect(facts).to_contain_text(f"Next offset for the lake{end:,}")
