"""The stream of events: a summary with each new snapshot, and every new decision.

Each event is made once for all who follow. A client that does not keep up is let go; it comes again
by itself, and gets the decisions that it missed.
"""

import asyncio
import json
import secrets
from collections.abc import Iterable
from typing import Any

from starlette.types import Receive, Scope, Send

from penstock.page.core.answers import Answers, failure
from penstock.page.core.decisions_kept import KeptDecision
from penstock.page.process.group_watching import GroupWatching

STREAMS_MAX = 32
# Events that wait for one slow client.
WAITING_MAX = 64
SEND_WITHIN_S = 20.0
# A comment, so that a proxy or a client does not take silence for the end.
COMMENT_EVERY_S = 15.0
COME_AGAIN_MS = 2_000
# Of the number of a decision, in what a client sends: no run has so many.
DIGITS_MAX = 18


class EventStreams:
    def __init__(self, watching: GroupWatching) -> None:
        self._watching = watching
        self._waiting: set[asyncio.Queue[bytes | None]] = set()
        # Numbers of decisions count anew with every run of the page.
        self._run = secrets.token_hex(4)
        watching.followers.add(self._tell)

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= STREAMS_MAX

    def _tell(self, new: list[KeptDecision]) -> None:
        if not self._waiting:
            return
        text = b"".join([*self._decisions(new), self._now()])
        for queue in list(self._waiting):
            if queue.full():
                self._waiting.discard(queue)
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(None)
            else:
                queue.put_nowait(text)

    def _decisions(self, decisions: Iterable[KeptDecision]) -> list[bytes]:
        return [
            event("decision", f"{self._run}-{one.number}", json.dumps(one.answer()))
            for one in decisions
        ]

    def _now(self) -> bytes:
        watching = self._watching
        view, number = watching.watch.view, watching.watch.decisions.newest_number
        name = f"{self._run}-{number}"
        if view is None or watching.problem is not None:
            message = watching.problem or "No status was read yet."
            return event("gone", name, json.dumps(failure("no_status", message)))
        answer = Answers(watching.watch, view, watching.group).status()
        data = {
            "snapshot": answer["snapshot"],
            "status": answer["status"],
            "sample": watching.watch.newest_sample(),
        }
        return event("summary", name, json.dumps(data))

    def _missed(self, last_id: str) -> list[bytes]:
        """The decisions after the last one that a client has seen in this run."""
        run, _, number = last_id.partition("-")
        is_number = number.isascii() and number.isdigit() and len(number) <= DIGITS_MAX
        if run != self._run or not is_number:
            return []
        return self._decisions(self._watching.watch.decisions.since_number(int(number)))

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        last_id = headers.get(b"last-event-id", b"").decode("latin-1")
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(WAITING_MAX)
        first = b"".join(
            [f"retry: {COME_AGAIN_MS}\n\n".encode(), *self._missed(last_id), self._now()]
        )
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [
                    (b"content-type", b"text/event-stream"),
                    (b"cache-control", b"no-store"),
                    (b"x-accel-buffering", b"no"),
                ],
            }
        )
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        self._waiting.add(queue)
        left = asyncio.ensure_future(_left(receive))
        try:
            await _send_part(send, first)
            while (part := await _next_part(queue, left)) is not None:
                await _send_part(send, part)
            await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            return  # it does not read: the connection is ended
        finally:
            self._waiting.discard(queue)
            left.cancel()


async def _next_part(
    queue: "asyncio.Queue[bytes | None]", left: "asyncio.Future[None]"
) -> bytes | None:
    """The next events, or a comment after a silence; None when the stream ends."""
    waiting = asyncio.ensure_future(queue.get())
    either: set[asyncio.Future[Any]] = {waiting, left}
    await asyncio.wait(either, timeout=COMMENT_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
    if left.done():
        waiting.cancel()
        return None
    if waiting.done():
        return waiting.result()
    waiting.cancel()
    return b": still here\n\n"


async def _send_part(send: Send, part: bytes) -> None:
    message = {"type": "http.response.body", "body": part, "more_body": True}
    await asyncio.wait_for(send(message), SEND_WITHIN_S)


async def _left(receive: Receive) -> None:
    """Returns when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def event(kind: str, name: str, data: str) -> bytes:
    """One event. JSON has no line ends in it, so its data is one line."""
    return f"event: {kind}\nid: {name}\ndata: {data}\n\n".encode()
