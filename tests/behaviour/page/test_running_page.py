"""A running page: its stream of events, TLS, what it says without a group, the file it leaves."""

import http.client
import json
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.kafka.secured_broker import make_certificates
from kit.page.made_up_group import MadeUpGroup
from kit.page.served import Served, served
from kit.program import invoked
from penstock.errors import PenstockError, SettingsError
from penstock.page.process import connections
from penstock.page.process.events import STREAMS_MAX
from penstock.page.process.routes import ROUTES
from penstock.page.process.server import run_page
from penstock.settings import Settings
from penstock.settings.sections import PageSettings


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("page") / "group") as running:
        yield running


@contextmanager
def followed(page: Served, last_id: str = "") -> Iterator[Iterator[tuple[str, str, Any]]]:
    """Events as they come: kind, id, data."""
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=20)
    headers = {"Last-Event-ID": last_id} if last_id else {}
    connection.request("GET", "/v1/events", headers=headers)
    answer = connection.getresponse()
    assert answer.headers["content-type"] == "text/event-stream"
    try:
        yield _events(answer)
    finally:
        connection.close()


def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, str, Any]]:
    fields: dict[str, str] = {}
    while line := answer.readline().decode():
        name, _, value = line.rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif "event" in fields:
            yield fields["event"], fields["id"], json.loads(fields["data"])
            fields = {}


def test_events_tell_what_is_new_and_can_be_resumed(page: Served) -> None:
    """A summary with each snapshot, each decision once; a client that was away misses none."""
    group = MadeUpGroup()
    with followed(page) as events:
        kind, first_id, data = next(events)
        assert (kind, data["status"]["partitions"]["total"]) == ("summary", 60)
        assert data["sample"]["written_bytes_per_s"] > 0
        group._tell("consumer_created", "consumer 99 is started")
        page.write(group.step())
        # The made-up group counts ages from its own begin: on a slow machine the page may take its
        # older decisions for new ones. They stand before the one that is asked for.
        told: list[str] = []
        seen_id = first_id
        while not told or told[-1] != "summary":
            kind, event_id, data = next(events)
            if kind == "decision" and data["sentence"] == "consumer 99 is started":
                before_id, decided_id = seen_id, event_id
                told.append("consumer 99")
            elif kind == "summary" and told:
                told.append("summary")
            seen_id = event_id
        assert told == ["consumer 99", "summary"]
        assert decided_id != before_id
    with followed(page, last_id=before_id) as events:
        kind, resumed_id, data = next(events)
        assert (kind, data["sentence"]) == ("decision", "consumer 99 is started")
        assert next(events)[0] == "summary"
    with followed(page, last_id=resumed_id) as events:
        assert next(events)[0] == "summary"
    run = resumed_id.partition("-")[0]
    # Python refuses to make a number of so many digits.
    for unknown in ("another-run", f"{run}-{'9' * 5_000}", f"{run}-x", run):
        with followed(page, last_id=unknown) as events:
            assert next(events)[0] == "summary"


def test_there_are_only_so_many_streams(page: Served) -> None:
    """The next one is refused in words, and a stream that ends makes way."""
    with ExitStack() as streams:
        for _ in range(STREAMS_MAX):
            events = streams.enter_context(followed(page))
            assert next(events)[0] == "summary"
        answer = page.ask("/v1/events")
        assert (answer.status, answer.json["code"]) == (429, "too_many_streams")
    for _ in range(100):
        with socket.create_connection(("127.0.0.1", page.port), timeout=5) as raw:
            raw.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if b"200 OK" in raw.recv(200):
                return
    raise AssertionError("no stream became free")


def test_an_answer_is_asked_for_again_only_when_it_is_new(page: Served) -> None:
    """With the tag of the newest answer there is no body."""
    group = MadeUpGroup()
    page.write(group.step())
    for _ in range(5):  # a snapshot may come in between
        tag = page.ask("/v1/status").headers["etag"]
        answer = page.ask("/v1/status", {"If-None-Match": tag})
        if answer.status == 304:
            assert answer.body == b""
            return
    raise AssertionError("every answer was new")


def test_which_answers_have_a_tag(page: Served) -> None:
    """Those that are made of a snapshot; each run of the page has seen other things."""
    named = [one for one in ROUTES if "{" not in one and one != "/v1/events"]
    tagged = {one for one in [*named, "/v1"] if "etag" in page.ask(one).headers}
    assert tagged == set(named) - {"/v1/tables", "/v1/session"}


def test_a_probe_says_nothing_of_the_group(tmp_path: Path) -> None:
    """It needs no token and no expected host: why the page is not ready is told under /v1 only."""
    with served(
        tmp_path / "group",
        "kafka.bootstrap_servers=broker-of-shop.invalid:9092",
        "kafka.answer_timeout=1s",
        has_group=False,
    ) as page:
        why = ""
        while "broker-of-shop" not in why:
            answer = page.ask("/v1/status")
            assert answer.status == 503
            why = answer.json["message"]
        for host in ("127.0.0.1", "foreign.example"):
            ready = page.ask("/readyz", host=host)
            assert (ready.status, ready.body) == (503, b'{"status": "unavailable"}')


def test_without_a_group_it_says_so(tmp_path: Path) -> None:
    """The page starts before its group, and its answers say what is missing."""
    with served(tmp_path / "group", "kafka.answer_timeout=1s") as page:
        (page.folder / "status.json").unlink()
        with followed(page) as events:
            kind, _, data = next(events)
            while kind == "summary":
                kind, _, data = next(events)
        assert (kind, data["code"]) == ("gone", "no_status")
        answer = page.ask("/v1/status")
        assert answer.json["snapshot"]["is_stale"]
        assert "No controller has written" in answer.json["snapshot"]["silence"]


def test_tls(tmp_path: Path) -> None:
    """With a certificate it is served encrypted, and the session's cookie is for TLS alone."""
    make_certificates(tmp_path)
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    context.check_hostname = False
    files = (
        f"page.certificate_file={tmp_path / 'broker.pem'}",
        f"page.key_file={tmp_path / 'broker.key'}",
    )
    token = "0123456789abcdef" * 2
    with served(
        tmp_path / "group",
        *files,
        "page.address=0.0.0.0:0",
        environment={"PENSTOCK_PAGE__TOKEN": token},
        tls=context,
    ) as page:
        assert page.scheme == "https"
        bearer = {"Authorization": f"Bearer {token}"}
        assert page.ask("/v1/status", bearer).status == 200
        assert "; Secure" in page.ask("/v1/session", bearer).headers["set-cookie"]
        assert page.ask("/v1/status").status == 401


class _SeenError(BaseException):
    """Ends the page: no look handles it."""


def test_a_tls_handshake_that_never_ends_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that says nothing, or half of its first message, has as long as for a request."""
    monkeypatch.setattr(connections, "REQUEST_WITHIN_S", 0.2)
    make_certificates(tmp_path)
    page = PageSettings(
        address="127.0.0.1:0",
        certificate_file=str(tmp_path / "broker.pem"),
        key_file=str(tmp_path / "broker.key"),
    )
    told: list[str] = []
    ended: list[bool] = []

    def read() -> dict[str, Any]:
        """While the server serves."""
        port = int(told[0].rpartition(":")[2].rstrip("/"))
        for said in (b"", bytes.fromhex("1603010200")):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as raw:
                raw.sendall(said)
                ended.append(_is_ended(raw))
        raise _SeenError

    with pytest.raises(PenstockError, match="stopped watching"):
        run_page(Settings(page=page), read, say=told.append)
    assert ended == [True, True]


def _is_ended(raw: socket.socket) -> bool:
    try:
        return raw.recv(100) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["page.address=0.0.0.0:0"], "there is no token"),
        (["page.certificate_file=a.pem", "page.key_file=b.pem"], "cannot be used"),
    ],
)
def test_what_is_not_safe_does_not_start(options: list[str], message: str) -> None:
    """An error of the settings, before anything is served."""
    found = invoked("page", *(part for one in options for part in ("--set", one)))
    assert isinstance(found.exception, SettingsError)
    assert message in found.exception.message


def test_an_address_that_is_taken() -> None:
    """Is told in a sentence, with what to do."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        found = invoked("page", "--set", f"page.address={address}")
    assert isinstance(found.exception, PenstockError)
    assert f"cannot listen on {address}" in found.exception.message


def test_it_ends_in_order(tmp_path: Path) -> None:
    """On Ctrl-C, with exit code 0, also while somebody follows its events."""
    with served(tmp_path / "group") as page, followed(page) as events:
        next(events)
        page.process.send_signal(signal.SIGINT)
        assert page.process.wait(timeout=20) == 0
