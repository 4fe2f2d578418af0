"""The routes: which question each path is, and its answer as JSON.

An answer is made once for each snapshot and question, however many ask.
"""

import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from penstock.page.core.answers import Answers, failure
from penstock.page.core.listing import BadQueryError
from penstock.page.core.questions import (
    asks_for_partitions,
    history_query,
    only,
    partition_query,
    timeline_query,
    whole_number,
)
from penstock.page.core.view import Json
from penstock.page.process.events import EventStreams
from penstock.page.process.group_watching import GroupWatching
from penstock.page.process.lake_tables import LakeTables
from penstock.page.process.static_files import StaticFile

ROUTES = (
    "/v1/status",
    "/v1/topics",
    "/v1/consumers",
    "/v1/consumers/{id}",
    "/v1/partitions",
    "/v1/partitions/{topic}/{partition}",
    "/v1/plan",
    "/v1/history",
    "/v1/tables",
    "/v1/timeline",
    "/v1/events",
    "/v1/session",
)
# Answers kept for those who ask the same, by number and by size.
KEPT_MAX = 64
KEPT_BYTES_MAX = 16 * 2**20
Question = Callable[[Answers, Request], Json | None]


class NotFoundError(Exception):
    """There is no such thing; the message is for people."""


@dataclass(slots=True)
class _Kept:
    tag: str = ""
    bodies: "OrderedDict[str, bytes]" = None  # type: ignore[assignment]

    def of(self, tag: str, question: str, make: Callable[[], bytes]) -> bytes:
        if tag != self.tag or self.bodies is None:
            self.tag, self.bodies = tag, OrderedDict()
        body = self.bodies.get(question)
        if body is None:
            body = self.bodies[question] = make()
            while (
                len(self.bodies) > KEPT_MAX
                or sum(len(one) for one in self.bodies.values()) > KEPT_BYTES_MAX
            ):
                self.bodies.popitem(last=False)
        return body


def json_bytes(answer: Json) -> bytes:
    text = json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")  # a name may hold half a character


def json_response(status: int, body: bytes, tag: str | None = None) -> Response:
    headers = {"Cache-Control": "no-store" if tag is None else "no-cache"}
    if tag is not None:
        headers["ETag"] = tag
    return Response(body, status, headers, media_type="application/json")


class ApiRoutes:
    def __init__(
        self,
        watching: GroupWatching,
        tables: LakeTables,
        static: dict[str, StaticFile],
    ) -> None:
        self._watching = watching
        self._tables = tables
        self._static = static
        self._kept = _Kept()
        self.streams = EventStreams(watching)

    def app(self) -> Starlette:
        asked: dict[str, Question] = {
            "/v1/status": _status,
            "/v1/topics": _topics,
            "/v1/consumers": lambda ask, request: ask.consumers(
                with_partitions=asks_for_partitions(given(request))
            ),
            "/v1/consumers/{id}": _consumer,
            "/v1/partitions": lambda ask, request: ask.partitions(partition_query(given(request))),
            "/v1/partitions/{topic}/{partition}": _partition,
            "/v1/plan": lambda ask, request: ask.plan(
                with_partitions=asks_for_partitions(given(request))
            ),
            "/v1/history": lambda ask, request: ask.history(history_query(given(request))),
            "/v1/timeline": lambda ask, request: ask.timeline(timeline_query(given(request))),
        }
        routes = [Route(path, self._answering(question)) for path, question in asked.items()]
        routes += [
            Route("/v1/tables", self._tables_answer),
            Route("/v1/events", _Stream(self.streams)),
            Route("/v1", self._index),
            Route("/healthz", _healthy),
            Route("/readyz", self._ready),
            Route("/{path:path}", self._file),
        ]
        app = Starlette(routes=routes)
        # To nowhere: its address would be made of what the request says of this host.
        app.router.redirect_slashes = False
        return app

    def _tag(self) -> str:
        watch, view = self._watching.watch, self._watching.watch.view
        if view is None:
            return '""'
        decisions, stale = watch.decisions.newest_number, view.snapshot["is_stale"]
        return f'W/"{view.at_unix_ms}-{watch.plan_at_unix_ms}-{decisions}-{int(stale)}"'

    def _answering(self, question: Question) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            watch, view = self._watching.watch, self._watching.watch.view
            if view is None:
                why = self._watching.problem or "No status was read yet."
                return json_response(503, json_bytes(failure("no_status", why)))
            tag = self._tag()
            if request.headers.get("if-none-match") == tag:
                return Response(status_code=304, headers={"ETag": tag})
            ask = Answers(watch, view, self._watching.group)

            def make() -> bytes:
                found = question(ask, request)
                if found is None:
                    raise NotFoundError
                return json_bytes(found)

            try:
                body = self._kept.of(tag, f"{request.url.path}?{request.url.query}", make)
            except BadQueryError as error:
                return json_response(400, json_bytes(failure("bad_query", error.message)))
            except NotFoundError:
                return _not_found(request.url.path)
            return json_response(200, body, tag)

        return answer

    async def _tables_answer(self, _: Request) -> Response:
        read = await self._tables.newest()
        return json_response(200, json_bytes(read.answer()))

    async def _index(self, _: Request) -> Response:
        answer = {"error": False, "message": "routes of version 1", "routes": list(ROUTES)}
        return json_response(200, json_bytes(answer))

    async def _ready(self, _: Request) -> Response:
        """Ready once the group's state was read; a silent controller is for its own probes.

        Whoever can reach the port may ask, without a token: why it is not ready is for /v1.
        """
        if self._watching.watch.view is not None:
            return json_response(200, b'{"status": "ok"}')
        return json_response(503, b'{"status": "unavailable"}')

    async def _file(self, request: Request) -> Response:
        name = request.path_params["path"] or "index.html"
        file = self._static.get("favicon.svg" if name == "favicon.ico" else name)
        if file is None:
            return _not_found(request.url.path)
        headers = {"Cache-Control": "no-cache", "ETag": file.tag}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers={**headers, "Content-Type": file.kind})


class _Stream:
    """The stream as a route: it sends for as long as its client stays."""

    def __init__(self, streams: EventStreams) -> None:
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._streams.is_full:
            message = "All event streams are taken; ask for /v1/status from time to time."
            response = json_response(429, json_bytes(failure("too_many_streams", message)))
            await response(scope, receive, send)
            return
        await self._streams.serve(scope, receive, send)


def given(request: Request) -> dict[str, list[str]]:
    query = request.query_params
    return {name: query.getlist(name) for name in query}


def _status(ask: Answers, request: Request) -> Json:
    only(given(request))
    return ask.status()


def _topics(ask: Answers, request: Request) -> Json:
    only(given(request))
    return ask.topics()


def _consumer(ask: Answers, request: Request) -> Json | None:
    only(given(request))
    return ask.consumer(whole_number("the consumer", request.path_params["id"], 0, 2**31))


def _partition(ask: Answers, request: Request) -> Json | None:
    only(given(request))
    number = whole_number("the partition", request.path_params["partition"], 0, 2**31)
    return ask.partition(request.path_params["topic"], number)


async def _healthy(_: Request) -> Response:
    return json_response(200, b'{"status": "ok"}')


def _not_found(path: str) -> Response:
    message = "There is no such thing here; /v1 lists the routes."
    code = "not_found"
    if path == "/v1/plan":
        code, message = "no_plan", "No plan can be made: no write speeds are known yet."
    status = 503 if code == "no_plan" else 404
    return json_response(status, json_bytes(failure(code, message)))
