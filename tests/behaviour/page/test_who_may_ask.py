"""A running page, asked in every way that it must refuse."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kit.page.made_up_group import MadeUpGroup
from kit.page.served import Served, served
from penstock.page.process.connections import CONNECTIONS_MAX
from penstock.page.process.routes import ROUTES

TOKEN = "canary-token-0123456789abcdef"  # noqa: S105 -- planted, to be looked for
CANARIES = {
    "PENSTOCK_PAGE__TOKEN": TOKEN,
    "PENSTOCK_KAFKA__SASL_PASSWORD": "canary-kafka-password",
    "PENSTOCK_KAFKA__SSL_KEY_PASSWORD": "canary-key-password",
    "SOME_OTHER_SECRET": "canary-of-the-environment",
}
MARKUP = "<img src=x onerror=alert(1)>"


def _asked_of(page: Served) -> list[str]:
    """Every route, with real names in it."""
    named = [
        one.replace("{id}", "1").replace("{topic}", "orders").replace("{partition}", "0")
        for one in ROUTES
        if one != "/v1/events"
    ]
    return [*named, "/v1", "/", "/healthz", "/readyz", "/v1/consumers?with=partitions"]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("page") / "group") as running:
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("guarded") / "group"
    with served(folder, environment=CANARIES) as running:
        yield running


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "ANYTHING"]
)
def test_only_get_and_head_exist(page: Served, method: str) -> None:
    """Every other method is refused on every route, and the answer says which there are."""
    for path in ("/", "/v1/status", "/v1/events", "/v1/session", "/healthz", "/nothing"):
        answer = page.ask(path, method=method)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_head_is_get_without_a_body(page: Served) -> None:
    """The same head, and no content."""
    for path in ("/v1/status", "/v1/tables", "/healthz", "/v1/events"):
        answer = page.ask(path, method="HEAD")
        assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "",
        "evil.example:80",
        "localhost@evil",
        "localhost:80@evil.example",
        "[::1].evil.example",
        "localhost:[",
    ],
)
def test_a_foreign_host_is_refused(page: Served, host: str) -> None:
    """A name that somebody else made point here reaches nothing (DNS rebinding)."""
    for path in ("/", "/v1/status", "/v1/events"):
        answer = page.ask(path, host=host)
        assert (answer.status, answer.json["code"]) == (403, "foreign_host")


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "LOCALHOST:80", "[::1]:8642"])
def test_this_machines_names_are_expected(page: Served, host: str) -> None:
    """With any port: a tunnel may use another."""
    assert page.ask("/v1/status", host=host).status == 200


@pytest.mark.parametrize("target", ["v1/status", "http://localhost/v1/status", "*", "?x"])
def test_an_address_that_does_not_begin_with_a_slash_leads_nowhere(
    page: Served, target: str
) -> None:
    """Not even to another address: that one would be made of what the request says."""
    with socket.create_connection(("127.0.0.1", page.port), timeout=5) as raw:
        raw.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert raw.recv(100).split()[1] in (b"400", b"404")


def test_two_hosts_are_refused(page: Served) -> None:
    """Which of them counts would be a guess."""
    with socket.create_connection(("127.0.0.1", page.port), timeout=5) as raw:
        raw.sendall(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert raw.recv(100).split()[1] in (b"400", b"403")


def test_two_origins_are_refused(page: Served) -> None:
    """Also where the first of them would be expected."""
    with socket.create_connection(("127.0.0.1", page.port), timeout=5) as raw:
        origins = b"Origin: http://localhost\r\nOrigin: http://evil.example\r\n"
        raw.sendall(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n" + origins + b"\r\n")
        assert raw.recv(100).split()[1] == b"403"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "file://"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_a_page_of_another_site_is_refused(page: Served, headers: dict[str, str]) -> None:
    """A browser names the site that asks; and no answer allows another site to read it."""
    for path in ("/v1/status", "/v1/events"):
        answer = page.ask(path, headers)
        assert (answer.status, answer.json["code"]) == (403, "foreign_origin")
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
    assert page.ask("/v1/status", {"Origin": f"http://127.0.0.1:{page.port}"}).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/pyproject.toml",
        "/static/../process/server.py",
        "/../process/server.py",
        "/..\\..\\etc\\passwd",
        "//etc/passwd",
        "/index.html%00.png",
        "/v1/partitions/..%2f..%2fetc/0",
        "/v1/../healthz/..",
    ],
)
def test_no_path_leads_out_of_the_page(page: Served, path: str) -> None:
    """Whatever is written in a path, it is only a name in a list."""
    answer = page.ask(path)
    assert answer.status in (400, 404)
    assert b"root:" not in answer.body
    assert b"import" not in answer.body


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/partitions/orders/99999999", 404),
        ("/v1/partitions/nothing/0", 404),
        ("/v1/partitions/orders/-1", 400),
        ("/v1/partitions/orders/NaN", 400),
        ("/v1/consumers/999999", 404),
        ("/v1/consumers/-1", 400),
        ("/v1/consumers/1e3", 400),
        ("/v1/consumers/4294967296", 400),
        ("/v1/partitions?limit=1000000000", 400),
        ("/v1/partitions?limit=-1", 400),
        ("/v1/partitions?limit=NaN", 400),
        ("/v1/partitions?after=WzFlOTk5LCJhIiwxXQ", 400),  # [1e999,"a",1]
        ("/v1/partitions?after=W05hTiwiYSIsMV0", 400),  # [NaN,"a",1]
        (f"/v1/partitions?after={'W1tb' * 2000}", 400),  # nested six thousand times
        ("/v1/partitions?sort=__class__", 400),
        ("/v1/timeline?points=1000000000", 400),
        ("/v1/timeline?from=-1", 400),
        ("/v1/history?since=-5", 400),
        ("/v1/history?limit=1001", 400),
        ("/v1/status?x=1", 400),
        ("/v1/topics?x=1", 400),
        ("/v2/status", 404),
    ],
)
def test_what_nobody_can_answer_is_said_in_words(page: Served, path: str, status: int) -> None:
    """Unknown things, negative and enormous numbers, and what is no number at all."""
    answer = page.ask(path)
    assert (answer.status, answer.json["error"]) == (status, True)
    assert len(answer.json["message"]) > 10


def test_every_answer_has_its_guards(page: Served) -> None:
    """No foreign or inline script, no frame, no guessing of types, no referrer; also on errors."""
    for path in (*_asked_of(page), "/nothing", "/v1/partitions?limit=x", "/v1/status?x=1"):
        headers = page.ask(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "*" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_a_token_is_needed_where_there_is_one(guarded: Served) -> None:
    """Nothing under /v1 without it; the page's files and the probes have nothing of the group."""
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    for path in _asked_of(guarded):
        without, given = guarded.ask(path), guarded.ask(path, bearer)
        if path.startswith("/v1"):
            assert (without.status, without.json["code"]) == (401, "token_needed")
            assert without.headers["www-authenticate"] == "Bearer"
            assert given.status in (200, 204)
        else:
            assert without.status == given.status != 401
    for wrong in ("Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}"):
        assert guarded.ask("/v1/status", {"Authorization": wrong}).status == 401
    assert guarded.ask(f"/v1/status?token={TOKEN}").status == 401


def test_a_browser_gets_a_session_for_its_token(guarded: Served) -> None:
    """The cookie is not the token, is for this site alone, and makes no new session."""
    answer = guarded.ask("/v1/session", {"Authorization": f"Bearer {TOKEN}"})
    cookie = answer.headers["set-cookie"]
    assert answer.status == 204
    assert "HttpOnly; SameSite=Strict" in cookie
    assert TOKEN not in cookie
    session = {"Cookie": f"other=1; {cookie.partition(';')[0]}"}
    assert guarded.ask("/v1/status", session).status == 200
    assert guarded.ask("/v1/session", session).status == 401
    assert guarded.ask("/v1/status", {"Cookie": f"penstock_session={TOKEN}"}).status == 401


def test_no_secret_is_in_any_answer(guarded: Served) -> None:
    """Planted in the settings and in the environment, found in no answer and no log."""
    for path in _asked_of(guarded):
        for headers in ({}, {"Authorization": f"Bearer {TOKEN}"}):
            answer = guarded.ask(path, headers)
            seen = answer.body.decode() + str(answer.headers)
            assert [one for one in CANARIES.values() if one in seen] == []
    assert [one for one in CANARIES.values() if one in guarded.log] == []


def test_names_made_of_markup_stay_text(tmp_path: Path) -> None:
    """They come back as JSON, of a type that no browser shows as a page."""
    text = json.dumps(MadeUpGroup(consumers=3, partitions=8).step())
    snapshot = json.loads(text.replace("clicks", MARKUP).replace("not", MARKUP))
    with served(tmp_path / "group", snapshot=snapshot) as page:
        for path in ("/v1/topics", "/v1/consumers?with=partitions", "/v1/partitions"):
            answer = page.ask(path)
            assert answer.headers["content-type"] == "application/json"
            assert MARKUP in str(answer.json)
        assert page.ask(f"/v1/partitions?topic={MARKUP.replace(' ', '%20')}").status == 400
        for path in ("/%3Cscript%3E", "/v1/consumers/%3Cb%3E", "/v1/history?code=%3Cb%3E"):
            answer = page.ask(path)
            assert answer.status in (400, 404)
            assert answer.headers["content-type"] == "application/json"


def test_a_thousand_slow_connections_stand_in_nobodys_way(page: Served) -> None:
    """Each has sent half a request: honest ones are answered, and most slow ones are let go."""
    with ExitStack() as slow:
        opened = []
        for _ in range(1_000):
            raw = slow.enter_context(socket.create_connection(("127.0.0.1", page.port), timeout=10))
            raw.sendall(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            opened.append(raw)
        begun_s = time.monotonic()
        for _ in range(20):
            assert page.ask("/v1/status").status == 200
        assert time.monotonic() - begun_s < 10
        ended = [raw for raw in opened if _is_ended(raw)]
        assert len(ended) >= 1_000 - CONNECTIONS_MAX


def test_the_one_that_has_waited_longest_makes_room(page: Served) -> None:
    """Not the one that was made first: that one has just asked something."""
    ask = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with ExitStack() as opened:

        def connected() -> socket.socket:
            address = ("127.0.0.1", page.port)
            return opened.enter_context(socket.create_connection(address, timeout=10))

        first, second, *_ = [connected() for _ in range(CONNECTIONS_MAX)]
        first.sendall(ask)
        assert b"200 OK" in first.recv(2_000)
        last = connected()
        last.sendall(ask)
        assert b"200 OK" in last.recv(2_000)
        assert _is_ended(second)
        assert not _is_ended(first)


def _is_ended(raw: socket.socket) -> bool:
    raw.setblocking(False)
    try:
        return raw.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_a_head_that_is_too_large_is_refused(page: Served) -> None:
    """And the server goes on."""
    with socket.create_connection(("127.0.0.1", page.port), timeout=5) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Large: " + b"x" * 100_000)
        assert raw.recv(100).split()[1] == b"400"
    assert page.ask("/v1/status").status == 200
