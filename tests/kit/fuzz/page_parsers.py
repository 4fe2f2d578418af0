"""Parsers of what the live page reads: requests of anybody, and the status of a group."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from starlette.datastructures import QueryParams
from starlette.types import Message, Scope

from kit.fuzz.parser import Form, Parser
from kit.page.made_up_group import MOVE_AT_S, STOPPED_AT_S, MadeUpGroup
from kit.page.page_server import MadeUpTables
from kit.page.record import as_read, watched
from penstock.model.json_text import read_json
from penstock.page.core.access import Access, host_name, session_of
from penstock.page.core.answers import Answers, HistoryQuery, TimelineQuery
from penstock.page.core.listing import BadQueryError, PartitionQuery
from penstock.page.core.questions import (
    asks_for_partitions,
    history_query,
    only,
    partition_query,
    timeline_query,
)
from penstock.page.core.status_shape import StatusNotUnderstoodError
from penstock.page.core.watch import Watch
from penstock.page.process.events import EventStreams
from penstock.page.process.gate import Gate
from penstock.page.process.group_watching import GroupWatching, _plan_of
from penstock.page.process.routes import ApiRoutes, json_bytes

_GROUP = MadeUpGroup(consumers=3, partitions=8, topics=2)
_WATCH = watched(_GROUP, STOPPED_AT_S + 2)
_TOKEN = "of-the-fuzzing-tests-0123456789"  # noqa: S105 -- of a page that listens nowhere
_HOSTS = frozenset({"localhost", "127.0.0.1", "::1", "page.example"})
# The server refuses a longer head.
_HEAD_BYTES_MAX = 16 * 1024
_TARGET = re.compile(rb"[\x21-\x7e]+")
_RUN = "0a1b2c3d"
_ANSWERS = frozenset({200, 204, 304, 400, 401, 403, 404, 405, 503})


def _watching() -> GroupWatching:
    watching = GroupWatching(dict, group="shop")
    watching.watch, watching.problem = _WATCH, None
    return watching


_ROUTES = ApiRoutes(_watching(), MadeUpTables(""), {})
_APP = Gate(_ROUTES.app(), Access(_HOSTS, _TOKEN), is_secure=False)


def _scope(data: bytes) -> Scope | None:
    """A head as the server gives it on: None where the server would refuse it itself."""
    first, *lines = data[:_HEAD_BYTES_MAX].split(b"\r\n")
    method, _, target = first.partition(b" ")
    raw_path, _, query = target.partition(b"?")
    if not (method.isalpha() and _TARGET.fullmatch(target)):
        return None
    pairs = [line.partition(b": ") for line in lines]
    headers = [(name.lower(), value) for name, is_given, value in pairs if name and is_given]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "http",
        "server": ("127.0.0.1", 8642),
        "client": ("127.0.0.1", 1),
        "root_path": "",
        "method": method.decode("ascii"),
        "raw_path": raw_path,
        "path": unquote(raw_path.decode("ascii")),
        "query_string": query,
        "headers": headers,
    }


async def _asked(scope: Scope) -> tuple[int, bytes]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}  # a stream ends after its first events

    await _APP(scope, receive, send)
    status = next(int(one["status"]) for one in sent if one["type"] == "http.response.start")
    return status, b"".join(one.get("body", b"") for one in sent)


def _request(data: bytes) -> None:
    scope = _scope(data)
    if scope is None:
        return
    status, body = asyncio.run(_asked(scope))
    assert status in _ANSWERS, status
    assert b"Traceback" not in body
    if status in {200, 204, 304}:
        _require_permitted(scope)


def _require_permitted(scope: Scope) -> None:
    """Whatever was answered was asked under a name that is ours, and with the token."""
    if scope["path"] in {"/healthz", "/readyz"}:
        return
    given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    assert len(given) == 1
    assert host_name(given[0]) in _HOSTS
    if scope["path"].startswith("/v1"):
        secrets = [v for n, v in scope["headers"] if n in {b"authorization", b"cookie"}]
        text = b" ".join(secrets).decode("latin-1")
        assert _TOKEN in text or session_of(_TOKEN) in text


def _question(data: bytes) -> None:
    """A line that says the route, and the options behind its address; then it is answered."""
    route, _, query = data.partition(b"\n")
    params = QueryParams(query)
    given = {name: params.getlist(name) for name in params}
    assert _WATCH.view is not None
    ask = Answers(_WATCH, _WATCH.view, "shop")
    answers: dict[bytes, Callable[[], Any]] = {
        b"partitions": lambda: ask.partitions(partition_query(given)),
        b"history": lambda: ask.history(history_query(given)),
        b"timeline": lambda: ask.timeline(timeline_query(given)),
        b"plan": lambda: ask.plan(with_partitions=asks_for_partitions(given)),
        b"consumers": lambda: ask.consumers(with_partitions=asks_for_partitions(given)),
    }
    if route in answers:
        json_bytes(answers[route]())
    else:
        only(given)


def _last_event(data: bytes) -> None:
    streams = EventStreams(_watching())
    streams._run = _RUN
    for one in streams._missed(data[:_HEAD_BYTES_MAX].decode("latin-1")):
        assert one.count(b"\n\n") == 1


def _foreign_status(data: bytes) -> None:
    """Refused as a whole, or every answer can be made of it; and the next status counts again."""
    status = read_json(data)
    if not isinstance(status, dict):
        raise StatusNotUnderstoodError("it is no object")
    watch = Watch()
    watch.add(_status(1))
    try:
        watch.add(status)
        watch.take_plan(_plan_of(status), status["at_unix_ms"])
        _require_answers(watch)
    finally:
        watch.add({**_status(2), "at_unix_ms": _status(2)["at_unix_ms"] + 60_000})
        _require_answers(watch)


def _require_answers(watch: Watch) -> None:
    view = watch.view
    assert view is not None
    ask = Answers(watch, view, "shop")
    made = [
        ask.status(),
        ask.topics(),
        ask.consumers(with_partitions=True),
        ask.plan(with_partitions=True),
        ask.history(HistoryQuery()),
        ask.timeline(TimelineQuery()),
        ask.timeline(TimelineQuery(topic="orders", from_unix_ms=0)),
        *(ask.partitions(PartitionQuery(sort=one)) for one in ("-name", "-behind", "consumer")),
        *(ask.consumer(one) for one in view.consumer_ids()[:3]),
        *(ask.partition(*_place(one)) for one in list(view.partitions)[:3]),
        {"sample": watch.newest_sample()},
    ]
    for one in made:
        json_bytes(one or {})
    EventStreams(_following(watch))._now()


def _place(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("-")
    return topic, int(number)


def _following(watch: Watch) -> GroupWatching:
    watching = GroupWatching(dict, group="shop")
    watching.watch, watching.problem = watch, None
    return watching


def _statuses() -> list[dict[str, Any]]:
    """Calm, with a partition that is stopped, and while partitions move."""
    group = MadeUpGroup(consumers=3, partitions=8, topics=2)
    told = [as_read(group.step()) for _ in range(MOVE_AT_S + 2)]
    return [told[5], told[STOPPED_AT_S + 2], told[-1]]


_STATUSES = _statuses()


def _status(place: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(_STATUSES[place]))
    return found


_HEAD = b"\r\nHost: localhost:8642\r\nAuthorization: Bearer " + _TOKEN.encode()
_COOKIE = b"\r\nHost: [::1]:8642\r\nCookie: a=b; penstock_session=" + session_of(_TOKEN).encode()
PAGE_PARSERS = (
    Parser(
        "page-request",
        _request,
        (
            b"GET /v1/status" + _HEAD + b"\r\nOrigin: http://page.example",
            b"GET /v1/partitions?sort=-speed&limit=3" + _COOKIE,
            b"GET /v1/partitions/orders/0" + _HEAD + b"\r\nSec-Fetch-Site: same-origin",
            b"HEAD /v1/consumers/1?x=1" + _COOKIE + b"\r\nOrigin: null",
            b"GET /v1/session" + _HEAD + b"\r\nSec-Fetch-Mode: navigate",
            b"GET /v1/events" + _HEAD + b"\r\nLast-Event-ID: 0a1b2c3d-7",
            b"GET /v1/tables" + _HEAD + b'\r\nIf-None-Match: W/"1-2-3-0"',
            b"GET v1/status" + _HEAD,
            b"GET ?x" + _HEAD,
            b"GET http://localhost:8642/v1/status" + _HEAD,
            b"GET /%2e%2e/index.html\r\nHost: PAGE.example.:1",
            b"POST /healthz\r\nHost: x",
        ),
        Form.BYTES,
        (
            "page/core/access.py",
            "page/process/gate.py",
            "page/process/routes.py",
            "page/process/events.py",
        ),
    ),
    Parser(
        "page-question",
        _question,
        (
            b"partitions\ntopic=orders&consumer=1&state=hot&sort=-speed&limit=5",
            b"partitions\nafter=Wy0wLjUsICJvcmRlcnMiLCAzXQ",
            b"history\ncode=plan_made&code=plan_done&since=1795000000000&limit=2",
            b"timeline\nfrom=1795000000000&to=1795000090000&points=10&topic=orders",
            b"plan\nwith=partitions",
            b"consumers\nwith=partitions",
            b"status\n",
        ),
        Form.BYTES,
        ("page/core/questions.py", "page/core/listing.py"),
        (BadQueryError,),
    ),
    Parser(
        "page-last-event",
        _last_event,
        (_RUN.encode() + b"-1", _RUN.encode() + b"-0"),
        Form.BYTES,
        ("page/process/events.py",),
    ),
    Parser(
        "page-status",
        _foreign_status,
        tuple(json.dumps(one).encode() for one in _STATUSES),
        Form.JSON_LINES,
        ("page/core/status_shape.py", "page/core/watch.py", "page/core/stories.py"),
        (StatusNotUnderstoodError, ValueError),
    ),
)
