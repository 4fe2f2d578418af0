"""What a process answers to probes."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from penstock.errors import PenstockError
from penstock.telemetry.health import Health, HealthServer, answer_to


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def asked(server: HealthServer, path: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}") as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_it_is_alive_while_its_loop_runs() -> None:
    """A loop without a pass for too long is reported dead, and alive after its next pass."""
    clock = Clock()
    health = Health(alive_within_s=10, monotonic=clock)
    clock.now_s += 10
    assert answer_to("/healthz", health)[0] == 200
    clock.now_s += 0.5
    assert answer_to("/healthz", health)[0] == 503
    assert answer_to("/readyz", health)[0] == 503
    health.beat()
    assert answer_to("/healthz", health)[0] == 200


def test_it_is_ready_when_it_has_begun_and_lacks_nothing() -> None:
    """What is missing is named; having it again makes it ready again."""
    health = Health()
    assert answer_to("/readyz", health) == (
        503,
        {"status": "unavailable", "lacking": {"start": "it is starting"}},
    )
    health.begun()
    assert answer_to("/readyz", health)[0] == 200
    health.lacks("kafka", "the broker takes no reports")
    assert answer_to("/readyz", health)[1]["lacking"] == {"kafka": "the broker takes no reports"}
    assert answer_to("/healthz", health)[0] == 200
    health.lacks("kafka", None)
    assert answer_to("/readyz", health)[0] == 200


def test_it_answers_over_http_and_tells_nothing_else() -> None:
    """Two paths; anything else is not found."""
    health = Health()
    with HealthServer(health, 0, "127.0.0.1") as server:
        assert asked(server, "/healthz") == (200, {"status": "ok"})
        assert asked(server, "/readyz?verbose=1")[0] == 503
        assert asked(server, "/etc/passwd")[0] == 404


def test_a_port_that_is_taken_is_a_clear_error() -> None:
    """It names the port and the flag."""
    with HealthServer(Health(), 0, "127.0.0.1") as server:
        with pytest.raises(PenstockError, match=str(server.port)) as raised:
            HealthServer(Health(), server.port, "127.0.0.1")
        assert "--health-port" in raised.value.remedy
