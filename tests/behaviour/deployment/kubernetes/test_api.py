"""Which API calls are retried, which are not, and the errors for people."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kit.kubernetes.stub_api_server import StubApiServer
from penstock.deployment import DeploymentError
from penstock.deployment.kubernetes.core.refusals import (
    ApiAnswer,
    ApiUnavailableError,
    MissingRightError,
    Right,
    error_of,
    pause_s,
)
from penstock.deployment.kubernetes.process.api import (
    DEPLOYMENTS,
    PODS,
    Api,
    ConflictError,
    GoneError,
)

DONE = {"metadata": {"name": "x", "uid": "1"}}


class Answers:
    """Answers from a list, then repeats the last one."""

    def __init__(self, *answers: tuple[int, Any] | tuple[int, Any, dict[str, str]]) -> None:
        self._answers = list(answers)

    def __call__(self, *_: Any) -> tuple[int, Any, dict[str, str]]:
        one = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return one[0], one[1], (one[2] if len(one) == 3 else {})


def failure(message: str) -> dict[str, str]:
    return {"kind": "Status", "message": message}


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_temporary_failures_are_retried_with_growing_pauses(status: int) -> None:
    """A temporary failure is retried with growing pauses, and the last answer counts."""
    pauses: list[float] = []
    with StubApiServer(Answers((status, {}), (status, {}), (status, {}), (200, DONE))) as server:
        assert Api(server.access(), sleep=pauses.append).read(DEPLOYMENTS, "x") == DONE
    assert len(pauses) == 3
    assert pauses == sorted(pauses)
    assert pauses[-1] > pauses[0]


def test_a_server_that_asks_for_patience_gets_it() -> None:
    """Retry-After is a lower bound of the pause, up to a maximum."""
    pauses: list[float] = []
    answers = Answers((429, {}, {"Retry-After": "3"}), (200, DONE))
    with StubApiServer(answers) as server:
        Api(server.access(), sleep=pauses.append).read(DEPLOYMENTS, "x")
    assert pauses == [3.0]
    assert pause_s(0, 3600.0, 0.5) == 5.0


def test_a_lasting_failure_is_raised_as_retryable() -> None:
    """After a bounded number of attempts the error is raised as retryable."""
    with (
        StubApiServer(Answers((500, failure("etcd is away")))) as server,
        pytest.raises(ApiUnavailableError, match="etcd is away") as raised,
    ):
        Api(server.access(), sleep=lambda _: None, attempts_max=4).read(DEPLOYMENTS, "x")
    assert raised.value.is_retryable
    assert raised.value.exit_code == 4
    assert len(server.asked) == 4


def test_a_server_that_is_down_is_retryable() -> None:
    """A server that is down is a retryable error."""
    with StubApiServer(Answers((200, DONE))) as server:
        access = server.access()
    with pytest.raises(ApiUnavailableError, match="no answer") as raised:
        Api(access, sleep=lambda _: None).read(DEPLOYMENTS, "x")
    assert raised.value.is_retryable


def test_a_missing_right_is_named_and_not_asked_for_again() -> None:
    """A missing right is refused by the server once, then from memory; other rights still work."""
    answers = Answers((403, failure("deployments.apps is forbidden")))
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
    """A full quota, which also answers 403, is a retryable error."""
    answers = Answers((403, failure('pods "x" is forbidden: exceeded quota: small')))
    with StubApiServer(answers) as server:
        api = Api(server.access(), sleep=lambda _: None)
        for _ in range(2):
            with pytest.raises(DeploymentError, match="exceeded quota") as raised:
                api.create(DEPLOYMENTS, DONE)
            assert raised.value.is_retryable
        assert len(server.asked) == 2


def test_a_conflict_is_for_the_caller_to_settle() -> None:
    """A conflict is raised at once: the caller has to read the object again."""
    with (
        StubApiServer(Answers((409, failure("already exists")))) as server,
        pytest.raises(ConflictError),
    ):
        Api(server.access(), sleep=lambda _: None).create(DEPLOYMENTS, DONE)
    assert len(server.asked) == 1


def test_what_is_not_there_is_no_error() -> None:
    """Reading and deleting a missing object are no errors."""
    with StubApiServer(Answers((404, failure("not found")))) as server:
        api = Api(server.access())
        assert api.read(DEPLOYMENTS, "x") is None
        assert api.delete(DEPLOYMENTS, "x", "1") is False


def test_a_retried_create_finds_its_object() -> None:
    """If the answer is lost, the retry finds the object that the first attempt created."""
    with (
        StubApiServer(Answers((504, {}), (409, failure("already exists")))) as server,
        pytest.raises(ConflictError),
    ):
        Api(server.access(), sleep=lambda _: None).create(DEPLOYMENTS, DONE)
    assert len(server.asked) == 2


def test_a_long_list_comes_in_pages() -> None:
    """A list returns all pages and the resource version."""

    def paged(_: str, path: str, __: Any) -> tuple[int, Any, dict[str, str]]:
        more = "continue=next" not in path
        metadata = {"resourceVersion": "7", "continue": "next" if more else ""}
        return (
            200,
            {"metadata": metadata, "items": [{"metadata": {"name": path[-4:], "uid": "u"}}]},
            {},
        )

    with StubApiServer(paged) as server:
        items, version = Api(server.access()).list_objects(DEPLOYMENTS, "a=b")
    assert (len(items), version) == (2, "7")


def watched(answer: tuple[int, Any]) -> Iterator[Any]:
    with StubApiServer(Answers(answer)) as server:
        yield from Api(server.access()).watch(DEPLOYMENTS, "a=b", "7", 5)


def test_a_watch_yields_changes_until_it_is_gone() -> None:
    """A watch yields complete changes, then GoneError."""
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
def test_a_refused_watch_raises_the_same_errors(status: int, kind: type[DeploymentError]) -> None:
    """A refused watch raises the same errors as any other call."""
    with pytest.raises(kind, match="watch deployments"):
        next(watched((status, failure("no"))))


def test_a_broken_watch_is_retryable() -> None:
    """An incomplete change is dropped, and the error is retryable."""
    with pytest.raises(ApiUnavailableError):
        list(watched((200, b'{"type": "ADDED", "obj\n')))


def test_a_rejected_object_is_not_retryable() -> None:
    """A rejected object is an error that is not retryable."""
    answer = ApiAnswer(422, json.dumps(failure("spec.replicas: invalid")).encode())
    error = error_of(Right("create", "deployments", "apps"), answer, "here")
    assert not error.is_retryable
    assert "spec.replicas: invalid" in error.message


def test_a_log_that_cannot_be_had_is_empty() -> None:
    """The log is empty when the pod has not started, is gone, or its node does not answer."""
    for status in (400, 404, 500):
        with StubApiServer(Answers((status, failure("no")))) as server:
            assert Api(server.access()).log_lines("p", "consumer", 5, previous=False) == []
            assert len(server.asked) == 1
    with StubApiServer(Answers((200, b"one\ntwo\n"))) as server:
        lines = Api(server.access()).log_lines("p", "consumer", 5, previous=True)
    assert lines == ["one", "two"]
    assert "previous=true" in server.asked[0][1]


def test_a_refusal_after_an_outage_is_not_believed() -> None:
    """After an outage a refusal is retryable: the server may not have read its roles yet."""

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
    """A right that worked before is retried a few times before it counts as missing."""
    answers = Answers((200, DONE), (403, failure("no")))
    with StubApiServer(answers) as server:
        api = Api(server.access(), sleep=lambda _: None, attempts_max=3)
        api.read(DEPLOYMENTS, "x")
        with pytest.raises(MissingRightError, match="get deployments"):
            api.read(DEPLOYMENTS, "x")
    assert len(server.asked) == 4


def test_an_answer_that_is_not_json_is_reported_by_its_status() -> None:
    """An answer that is not JSON, as from a proxy, is reported by its status code."""
    error = error_of(Right("list", "pods"), ApiAnswer(400, b"<html>"), "here")
    assert "400" in error.message
    assert "html" not in error.message
