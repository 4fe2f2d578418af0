"""The server of the page with 10,000 partitions and 500 consumers, and with 60 and 12.

A real `penstock page` beside a status file that is written once a second, as a controller would.
Measured: the processor time of each answer, and of the server while a client follows the events and
asks for the consumers as the page does, and its memory. What else runs on the machine does not
count. The exit code is 1 when a bound is broken: 5 % of a core while watched, 0.5 s for an answer.

Run it from the checkout: `.venv/bin/python benchmarks/page.py`
"""

import http.client
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from kit.page.made_up_group import MadeUpGroup
from kit.page.served import Served, served

SIZES = ((12, 60, 4), (500, 10_000, 200))
WATCHED_S = 40
SETTLING_S = 10
TRIES = 10
OK = 200
SHARE_MAX = 0.05
ANSWER_S_MAX = 0.5
ASKED_EVERY_S = 2.0
# In the long run a controller of a large group writes once in four seconds.
SNAPSHOTS = 4
ROUTES = (
    "/v1/status",
    "/v1/topics",
    "/v1/consumers",
    "/v1/consumers?with=partitions",
    "/v1/consumers/1",
    "/v1/partitions?sort=-speed",
    "/v1/partitions?limit=1000",
    "/v1/partitions/orders/0",
    "/v1/plan",
    "/v1/history",
    "/v1/timeline",
)
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def processor_s(page: Served) -> float:
    fields = Path(f"/proc/{page.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def memory_mb(page: Served) -> float:
    lines = Path(f"/proc/{page.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def feed(page: Served, texts: list[str], every_s: float, stop: threading.Event) -> None:
    """Write prepared snapshots in turn, dated now: the writer must not use up the machine."""
    number = 0
    while not stop.wait(every_s):
        now_ms = round(time.time() * 1000)
        text = texts[number % len(texts)].replace('"at_unix_ms": 0', f'"at_unix_ms": {now_ms}')
        partial = page.folder / "status.partial"
        partial.write_text(text, encoding="utf-8")
        partial.replace(page.folder / "status.json")
        number += 1


def follow(page: Served, stop: threading.Event) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=30)
    connection.request("GET", "/v1/events")
    answer = connection.getresponse()
    while not stop.is_set():
        answer.readline()
    connection.close()


def answers(page: Served) -> dict[str, tuple[float, int]]:
    """The processor time of an answer that is not kept yet, and its bytes."""
    found = {}
    for route in ROUTES:
        size, before_s = 0, processor_s(page)
        for number in range(TRIES):
            # An empty option more is another question, which is not answered from memory.
            text = route + ("&" if "?" in route else "?") + "&" * number
            answer = page.ask(text)
            if answer.status != OK:
                raise RuntimeError(f"{text}: {answer.status} {answer.body[:200]!r}")
            size = len(answer.body)
        found[route] = ((processor_s(page) - before_s) / TRIES, size)
    return found


def measure(consumers: int, partitions: int, topics: int) -> bool:
    group = MadeUpGroup(consumers, partitions, topics)
    texts = [json.dumps({**group.step(), "at_unix_ms": 0}) for _ in range(SNAPSHOTS)]
    every_s = 1.0 if partitions < 1_000 else 4.0
    stop = threading.Event()
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder) / "group", snapshot=json.loads(texts[0])) as page,
    ):
        threads = [
            threading.Thread(target=feed, args=(page, texts, every_s, stop)),
            threading.Thread(target=follow, args=(page, stop)),
        ]
        for thread in threads:
            thread.start()
        try:
            time.sleep(SETTLING_S)
            before_s, begun_s = processor_s(page), time.monotonic()
            while time.monotonic() - begun_s < WATCHED_S:
                page.ask("/v1/consumers")
                time.sleep(ASKED_EVERY_S)
            share = (processor_s(page) - before_s) / (time.monotonic() - begun_s)
            slowest = 0.0
            say(f"{partitions} partitions, {consumers} consumers")
            for route, (seconds, size) in answers(page).items():
                slowest = max(slowest, seconds)
                say(f"  {route:<32} {seconds * 1000:7.1f} ms {size / 1000:9.1f} kB")
            say(f"  while watched: {share:.1%} of a core; {memory_mb(page):.0f} MB of memory")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    return share <= SHARE_MAX and slowest <= ANSWER_S_MAX


def main() -> None:
    good = [measure(*size) for size in SIZES]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
