"""Everything that a running group answers over HTTP: metrics, health, the page and its API."""

import http.client
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path

from penstock.page.process.routes import ROUTES

ASK_S_MAX = 60.0
# How much of the stream of events is read: it has no end.
EVENTS_S = 8.0
_PAGE = re.compile(r"the live page: http://127\.0\.0\.1:(\d+)/")


def asked(port: int, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
    """The status, and the head and body as one text."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASK_S_MAX)
    try:
        connection.request("GET", path, headers=dict(headers or {}))
        answer = connection.getresponse()
        body = answer.read().decode(errors="replace")
        return answer.status, f"{answer.getheaders()}\n{body}"
    finally:
        connection.close()


def scraped_targets(folder: Path) -> dict[str, str]:
    """By process, what it says of its metrics and its health."""
    found = {}
    for file in sorted(folder.glob("*.json")):
        (target,) = json.loads(file.read_text(encoding="utf-8"))
        port = int(target["targets"][0].rpartition(":")[2])
        answers = [asked(port, path)[1] for path in ("/metrics", "/healthz", "/readyz")]
        found[file.stem] = "\n".join(answers)
    return found


def page_port(log: Path) -> int:
    """Where `penstock up` says that its page is."""
    found = _PAGE.search(log.read_text(encoding="utf-8"))
    assert found is not None, "the group has no page"
    return int(found[1])


def everything_of_page(port: int, token: str, topics: Mapping[str, int]) -> dict[str, str]:
    """Every route with the token and without; what was asked, and the answer.

    `topics` are those whose partitions of this number are asked for.
    """
    bearer = {"Authorization": f"Bearer {token}"}
    paths = ["/", "/v1", "/nothing", "/v1/consumers?with=partitions", "/v1/partitions?limit=x"]
    for route in ROUTES:
        if "{topic}" in route:
            named = (route.replace("{topic}", topic) for topic in topics)
            paths += [
                one.replace("{partition}", str(number))
                for one, number in zip(named, topics.values(), strict=True)
            ]
        elif route != "/v1/events":
            paths.append(route.replace("{id}", "1"))
    found = {}
    for path in paths:
        status, answer = asked(port, path, bearer)
        assert status < 500 or path == "/v1/plan", f"{path}: {answer}"
        found[path] = answer
        found[f"{path} without the token"] = asked(port, path)[1]
    found["/v1/events"] = events(port, bearer)
    return found


def events(port: int, headers: Mapping[str, str]) -> str:
    """What a follower is told in some seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASK_S_MAX)
    ends_s, heard = time.monotonic() + EVENTS_S, b""
    try:
        connection.request("GET", "/v1/events", headers=dict(headers))
        answer = connection.getresponse()
        assert answer.status == 200
        while time.monotonic() < ends_s and (line := answer.readline()):
            heard += line
    finally:
        connection.close()
    return heard.decode(errors="replace")
