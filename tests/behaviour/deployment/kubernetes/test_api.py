"""What is tried again, what is not, and what people hear of a refusal."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kit.kubernetes.stub_api_server import StubApiServer
from penstock.deployment import DeploymentError
from penstock.deployment.kubernetes.api import DEPLOYMENTS, PODS, Api, ConflictError, GoneError
from penstock.deployment.kubernetes.core.refusals import (
    ApiAnswer,
    ApiUnavailableError,
    MissingRightError,
    Right,
    error_of,
    pause_s,
)

DONE = {"metadata": {"name": "x", "uid": "1"}}


class Told:
    """Answers from a list, then the last one for ever."""

    def __init__(self, *answers: tuple[int, Any] | tuple[int, Any, dict[str, str]]) -> None:
        self._answers = list(answers)

    def __call__(self, *_: Any) -> tuple[int, Any, dict[str, str]]:
        one = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return one[0], one[1], (one[2] if len(one) == 3 else {})


def failure(message: str) -> dict[str, str]:
    return {"kind": "Status", "message": message}


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_passing_trouble_is_tried_again_with_growing_pauses(status: int) -> None:
    """And its end is what counts."""
    pauses: list[float] = []
    with StubApiServer(Told((status, {}), (status, {}), (status, {}), (200, DONE))) as server:
        assert Api(server.access(), sleep=pauses.append).read(DEPLOYMENTS, "x") == DONE
    assert len(pauses) == 3
    assert pauses == sorted(pauses)
    assert pauses[-1] > pauses[0]


def test_a_server_that_asks_for_patience_gets_it() -> None:
    """Retry-After is a lower bound of the pause, but not for ever."""
    pauses: list[float] = []
    answers = Told((429, {}, {"Retry-After": "3"}), (200, DONE))
    with StubApiServer(answers) as server:
        Api(server.access(), sleep=pauses.append).read(DEPLOYMENTS, "x")
    assert pauses == [3.0]
    assert pause_s(0, 3600.0, 0.5) == 5.0


def test_trouble_that_does_not_pass_is_given_up() -> None:
    """After a bounded number of attempts, as something that may pass later."""
    with (
        StubApiServer(Told((500, failure("etcd is away")))) as server,
        pytest.raises(ApiUnavailableError, match="etcd is away") as raised,
    ):
        Api(server.access(), sleep=lambda _: None, attempts_max=4).read(DEPLOYMENTS, "x")
    assert raised.value.is_retryable
    assert raised.value.exit_code == 4
    assert len(server.asked) == 4


def test_nobody_there_is_trouble_that_may_pass() -> None:
    """A server that is down is not an error of the program."""
    with StubApiServer(Told((200, DONE))) as server:
        access = server.access()
    with pytest.raises(ApiUnavailableError, match="no answer") as raised:
        Api(access, sleep=lambda _: None).read(DEPLOYMENTS, "x")
    assert raised.value.is_retryable


def test_a_missing_right_is_named_and_not_asked_for_again() -> None:
    """Once at the server, then from memory; other rights are not concerned."""
    answers = Told((403, failure("deployments.apps is forbidden")))
    with StubApiServer(answers) as server:
        api = Api(server.access(), sleep=lambda _: None)
        for _ in range(3):
            with pytest.raises(MissingRightError) as raised:
                api.create(DEPLOYMENTS, DONE)
            assert not raised.value.is_retryable
            assert raised.value.exit_code == 5
            assert "create deployments of apps" in raised.value.message
            assert "create deployments of apps" in raised.value.remedy
        assert len(server.asked) == 1
        with pytest.raises(MissingRightError, match="get pods"):
            api.read(PODS, "x")
        assert len(server.asked) == 2


def test_a_full_quota_is_no_missing_right() -> None:
    """It comes with the same number, and passes."""
    answers = Told((403, failure('pods "x" is forbidden: exceeded quota: small')))
    with StubApiServer(answers) as server:
        api = Api(server.access(), sleep=lambda _: None)
        for _ in range(2):
            with pytest.raises(DeploymentError, match="exceeded quota") as raised:
                api.create(DEPLOYMENTS, DONE)
            assert raised.value.is_retryable
        assert len(server.asked) == 2


def test_a_conflict_is_for_the_caller_to_settle() -> None:
    """It has to look again first."""
    with (
        StubApiServer(Told((409, failure("already exists")))) as server,
        pytest.raises(ConflictError),
    ):
        Api(server.access(), sleep=lambda _: None).create(DEPLOYMENTS, DONE)
    assert len(server.asked) == 1


def test_what_is_not_there_is_no_error() -> None:
    """Neither to look for nor to delete."""
    with StubApiServer(Told((404, failure("not found")))) as server:
        api = Api(server.access())
        assert api.read(DEPLOYMENTS, "x") is None
        assert api.delete(DEPLOYMENTS, "x", "1") is False


def test_a_create_whose_answer_was_lost_is_found_to_have_happened() -> None:
    """Unknown is a third outcome: the second attempt meets the first one's object."""
    with (
        StubApiServer(Told((504, {}), (409, failure("already exists")))) as server,
        pytest.raises(ConflictError),
    ):
        Api(server.access(), sleep=lambda _: None).create(DEPLOYMENTS, DONE)
    assert len(server.asked) == 2


def test_a_long_list_comes_in_pages() -> None:
    """All of it, and the version of the whole."""

    def paged(_: str, path: str, __: Any) -> tuple[int, Any, dict[str, str]]:
        more = "continue=next" not in path
        metadata = {"resourceVersion": "7", "continue": "next" if more else ""}
        return 200, {"metadata": metadata, "items": [{"name": path[-4:]}]}, {}

    with StubApiServer(paged) as server:
        items, version = Api(server.access()).list_objects(DEPLOYMENTS, "a=b")
    assert (len(items), version) == (2, "7")


def watched(answer: tuple[int, Any]) -> Iterator[Any]:
    with StubApiServer(Told(answer)) as server:
        yield from Api(server.access()).watch(DEPLOYMENTS, "a=b", "7", 5)


def test_a_watch_tells_changes_until_its_past_is_gone() -> None:
    """Whole lines, then the error that means: list again."""
    changes = [{"type": "ADDED", "object": DONE}, {"type": "ERROR", "object": {"code": 410}}]
    body = b"\n".join(json.dumps(one).encode() for one in changes) + b"\n"
    found = watched((200, body))
    assert next(found) == changes[0]
    with pytest.raises(GoneError):
        next(found)
    with pytest.raises(GoneError):
        next(watched((410, failure("too old"))))


@pytest.mark.parametrize(
    ("status", "kind"),
    [(403, MissingRightError), (500, ApiUnavailableError), (401, DeploymentError)],
)
def test_a_watch_that_is_refused_says_why(status: int, kind: type[DeploymentError]) -> None:
    """In the same words as any other call."""
    with pytest.raises(kind, match="watch deployments"):
        next(watched((status, failure("no"))))


def test_a_watch_that_breaks_in_mid_line_is_trouble_that_may_pass() -> None:
    """Half a change is no change."""
    with pytest.raises(ApiUnavailableError):
        list(watched((200, b'{"type": "ADDED", "obj\n')))


def test_the_answer_to_nonsense_is_final() -> None:
    """An object that the server does not accept will not be accepted later either."""
    answer = ApiAnswer(422, json.dumps(failure("spec.replicas: invalid")).encode())
    error = error_of(Right("create", "deployments", "apps"), answer, "here")
    assert not error.is_retryable
    assert "spec.replicas: invalid" in error.message


def test_a_log_that_cannot_be_had_is_empty() -> None:
    """Not yet started, gone, or its node does not answer: nobody waits for it."""
    for status in (400, 404, 500):
        with StubApiServer(Told((status, failure("no")))) as server:
            assert Api(server.access()).log_lines("p", "consumer", 5, previous=False) == []
            assert len(server.asked) == 1
    with StubApiServer(Told((200, b"one\ntwo\n"))) as server:
        lines = Api(server.access()).log_lines("p", "consumer", 5, previous=True)
    assert lines == ["one", "two"]
    assert "previous=true" in server.asked[0][1]


def test_a_refusal_after_an_outage_is_not_believed() -> None:
    """A server that has just started refuses everything until it has read its roles."""

    def answering(_: str, path: str, __: Any) -> tuple[int, Any, dict[str, str]]:
        return (403, failure("not yet"), {}) if path.endswith("early") else (200, DONE, {})

    with StubApiServer(answering) as server:
        api = Api(server.access(), sleep=lambda _: None, attempts_max=3)
        api._last_outage_s = time.monotonic()
        with pytest.raises(ApiUnavailableError, match="not yet") as raised:
            api.read(DEPLOYMENTS, "early")
        assert raised.value.is_retryable
        assert len(server.asked) == 3
        assert api.read(DEPLOYMENTS, "late") == DONE


def test_a_right_that_worked_is_asked_for_again_before_it_counts_as_lost() -> None:
    """A few times, then it is said to be missing."""
    answers = Told((200, DONE), (403, failure("no")))
    with StubApiServer(answers) as server:
        api = Api(server.access(), sleep=lambda _: None, attempts_max=3)
        api.read(DEPLOYMENTS, "x")
        with pytest.raises(MissingRightError, match="get deployments"):
            api.read(DEPLOYMENTS, "x")
    assert len(server.asked) == 4


def test_an_answer_that_is_no_json_is_told_by_its_number() -> None:
    """A proxy in between answers with a page of its own."""
    error = error_of(Right("list", "pods"), ApiAnswer(400, b"<html>"), "here")
    assert "400" in error.message
    assert "html" not in error.message
