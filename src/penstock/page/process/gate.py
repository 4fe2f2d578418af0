"""Stands before every route: refuses what may not be asked, sets the headers of every answer."""

import json
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.page.core.access import Access, Refused, RequestHead, session_cookie
from penstock.page.core.answers import failure

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
)
_RAW_HEADERS = tuple((name.lower().encode(), value.encode()) for name, value in HEADERS)


class Gate:
    def __init__(self, app: ASGIApp, access: Access, *, is_secure: bool) -> None:
        self._app = app
        self._access = access
        self._is_secure = is_secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no lifespan, and no web socket

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_RAW_HEADERS]
            await send(message)

        refused = self._access.refusal(head_of(scope))
        if refused is not None:
            await _refuse(refused, scope, guarded)
        elif scope["path"] == "/v1/session":
            await self._begin_session(guarded)
        else:
            await self._app(scope, receive, guarded)

    async def _begin_session(self, send: Send) -> None:
        """The token was in the header: the browser gets a cookie in exchange."""
        headers = [(b"cache-control", b"no-store")]
        if self._access.token is not None:
            cookie = session_cookie(self._access.token, is_secure=self._is_secure)
            headers.append((b"set-cookie", cookie.encode()))
        await send({"type": "http.response.start", "status": 204, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def head_of(scope: Scope) -> RequestHead:
    values: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        values.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))

    def one(name: str) -> str | None:
        """Several of a name are joined, as HTTP says: so none of them counts alone."""
        return ", ".join(values[name]) if name in values else None

    return RequestHead(
        method=scope["method"],
        path=scope["path"],
        hosts=tuple(values.get("host", ())),
        origin=one("origin"),
        fetch_site=one("sec-fetch-site"),
        fetch_mode=one("sec-fetch-mode"),
        authorization=one("authorization"),
        cookie=one("cookie"),
    )


async def _refuse(refused: Refused, scope: Scope, send: Send) -> None:
    body = json.dumps(failure(refused.code, refused.message)).encode()
    headers: list[Any] = [
        (b"content-type", b"application/json"),
        (b"cache-control", b"no-store"),
        (b"content-length", str(len(body)).encode()),
    ]
    extra = {405: (b"allow", b"GET, HEAD"), 401: (b"www-authenticate", b"Bearer")}
    if refused.status in extra:
        headers.append(extra[refused.status])
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
