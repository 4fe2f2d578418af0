"""Parsers of what other processes say: Kubernetes, the group's own files, a trial, HTTP."""

import io
import json
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kit.controller.whole_status import whole_status
from kit.fuzz.parser import Form, Parser
from kit.fuzz.settings_parsers import in_a_file
from penstock.cli.group_status import read_status
from penstock.cli.settings_in_force import read_in_force_file
from penstock.deployment.kubernetes.core.answers import read_change, read_list, read_object
from penstock.deployment.kubernetes.core.manifests import template_from_text
from penstock.deployment.kubernetes.core.refusals import ApiAnswer, ApiUnavailableError, message_of
from penstock.deployment.kubernetes.core.repairs import inspect_consumers
from penstock.deployment.kubernetes.core.status import consumer_of_object, deployed
from penstock.deployment.kubernetes.process.watched_objects import WatchedObjects
from penstock.deployment.local_processes import LocalProcesses
from penstock.deployment.trial_run import outcome_of
from penstock.errors import PenstockError, UsageError
from penstock.model import ConsumerId
from penstock.processes.registry import ServerRegistry
from penstock.settings import Settings, load_settings
from penstock.telemetry.health import Health, _Handler

ONE = ConsumerId(1)
_METADATA: dict[str, Any] = {
    "name": "g-consumer-1",
    "uid": "u1",
    "labels": {"penstock.io/consumer": "1"},
    "annotations": {"penstock.io/template-version": "2", "penstock.io/template": '{"version": 2}'},
    "resourceVersion": "17",
    "creationTimestamp": "2026-01-01T00:00:00Z",
}
_CONTAINER = {
    "name": "consumer",
    "restartCount": 1,
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "m"}},
    "lastState": {"terminated": {"reason": "Error", "exitCode": 1}},
}
_CONDITION = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
_OBJECT = {
    "metadata": _METADATA,
    "spec": {"replicas": 1},
    "status": {
        "phase": "Pending",
        "conditions": [_CONDITION, {"type": "ReplicaFailure", "status": "True"}],
        "containerStatuses": [_CONTAINER],
        "initContainerStatuses": [{**_CONTAINER, "state": {"terminated": {"exitCode": 3}}}],
    },
}
_LIST = {"metadata": {"resourceVersion": "9", "continue": ""}, "items": [_OBJECT]}


class _OneList:
    """An API server that answers once."""

    def __init__(self, page: Any) -> None:
        self._page = page

    def list_objects(self, *_: object) -> tuple[list[Any], str]:
        return self._page.get("items") or [], str(self._page["metadata"]["resourceVersion"])

    def watch(self, *_: object) -> list[Any]:
        return [{"type": "MODIFIED", "object": one} for one in self._page.get("items") or []]


def _used(one: Any) -> None:
    consumer_of_object(one)
    deployed(ONE, one, [one], 2e9)
    deployed(ONE, one, [], 2e9)
    first = inspect_consumers([ONE], {ONE: one}, {ONE: [one]}, {}, 2e9)
    inspect_consumers([ONE], {ONE: one}, {}, first.observed, 2e9)
    template_from_text((one["metadata"].get("annotations") or {}).get("penstock.io/template", ""))


def _object(data: bytes) -> None:
    message_of(ApiAnswer(403, data))
    _used(read_object(data))


def _listed(data: bytes) -> None:
    page = read_list(data)
    watched = WatchedObjects(_OneList(page), ("api/v1", "pods"), "")  # type: ignore[arg-type] # the two calls that it makes
    watched._since = watched._list()
    watched._follow()
    for one in watched.objects():
        _used(one)


def _changed(data: bytes) -> None:
    change = read_change(data)
    if change["type"] == "ERROR":
        assert int(change["object"].get("code", 500)) is not None
    elif change["type"] != "BOOKMARK":
        _used(change["object"])


def _template(data: bytes) -> None:
    found = template_from_text(data.decode(errors="replace"))
    assert found is None or isinstance(found.version, int)


def _trial(data: bytes) -> None:
    text = data.decode(errors="replace")
    for exit_code in (0, 1, 4):
        outcome_of(exit_code, text, text)


def _note(data: bytes) -> None:
    def read(file: Path) -> None:
        folder = file.parent / "consumer-1"
        folder.mkdir()
        file.replace(folder / "deployment.json")
        backend = LocalProcesses(file.parent, "g", lambda *_: None)  # type: ignore[arg-type] # nothing is started
        backend.list_consumers()
        backend.started_here()

    in_a_file(read)(data)


def _settings_of(file: Path) -> Settings:
    return load_settings(None, {"controller.directory": str(file.parent)}, {}, cores=2).settings


def _status(file: Path) -> None:
    read_status(_settings_of(file))


def _in_force(file: Path) -> None:
    read_in_force_file(_settings_of(file))


class _Connection:
    """A client that has sent all it has to say."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.answer = b""

    def makefile(self, *_: object) -> Any:
        return io.BytesIO(self.data)

    def sendall(self, data: bytes) -> None:
        self.answer += data

    def settimeout(self, _: float) -> None:
        pass


def _http(data: bytes) -> None:
    handler = type("Handler", (_Handler,), {"health": Health()})
    client = _Connection(data)
    server = SimpleNamespace(asked=lambda _: None)
    with suppress(ConnectionError):
        handler(client, ("127.0.0.1", 1), server)
    assert not client.answer or client.answer.startswith((b"HTTP/1.", b"<!DOCTYPE", b"{")), (
        client.answer
    )
    assert b"Traceback" not in client.answer


_STATUS = whole_status() | {"at_unix_ms": 5, "has_ended": False}
_NOTE = {
    "consumer": 1,
    "group": "g",
    "process": {"pid": 999_999_999, "started_at_ticks": 4},
    "template": {"version": 1, "environment": {"APP_A": "x"}},
    "restarts": 1,
    "started_monotonic_s": 4.5,
    "owner": "o",
}
_SERVER = {
    "name": "input",
    "address": "127.0.0.1:1",
    "processes": [{"pid": 999_999_999, "started_at_ticks": 4}],
    "log_files": ["x"],
    "data_directory": "d",
    "is_temporary": False,
}


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _servers(file: Path) -> None:
    for one in ServerRegistry(file.parent).all():
        assert one.living == 0


PROCESS_PARSERS = (
    Parser(
        "kubernetes-object",
        _object,
        (_json(_OBJECT), _json({"kind": "Status", "message": "no", "code": 403})),
        Form.JSON_LINES,
        (
            "deployment/kubernetes/core/answers.py",
            "deployment/kubernetes/core/refusals.py",
            "deployment/kubernetes/core/status.py",
        ),
        (ApiUnavailableError,),
    ),
    Parser(
        "kubernetes-list",
        _listed,
        (_json(_LIST),),
        Form.JSON_LINES,
        ("deployment/kubernetes/core/answers.py",),
        (ApiUnavailableError,),
    ),
    Parser(
        "kubernetes-change",
        _changed,
        (
            _json({"type": "ADDED", "object": _OBJECT}),
            _json({"type": "ERROR", "object": {"code": 410}}),
            _json({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "5"}}}),
        ),
        Form.JSON_LINES,
        ("deployment/kubernetes/core/answers.py",),
        (ApiUnavailableError,),
    ),
    Parser(
        "kubernetes-template",
        _template,
        (_json({"version": 2, "environment": {"APP_A": "x"}, "image": "penstock:3"}),),
        Form.JSON_LINES,
        ("deployment/kubernetes/core/manifests.py",),
    ),
    Parser(
        "trial-answer",
        _trial,
        (_json([{"ok": False, "exit_code": 3, "explanation": "e", "remedy": "r"}]),),
        Form.JSON_LINES,
        ("deployment/trial_run.py",),
    ),
    Parser(
        "consumer-note",
        _note,
        (_json(_NOTE), _json({**_NOTE, "process": None})),
        Form.JSON_LINES,
        ("deployment/local_processes.py",),
    ),
    Parser(
        "named-server",
        in_a_file(_servers, "input.json"),
        (_json(_SERVER),),
        Form.JSON_LINES,
        ("processes/registry.py",),
        (UsageError,),
    ),
    Parser(
        "status-file",
        in_a_file(_status, "status.json"),
        (_json(_STATUS),),
        Form.JSON_LINES,
        ("cli/group_status.py", "page/core/status_shape.py"),
        (PenstockError,),
    ),
    Parser(
        "settings-in-force",
        in_a_file(_in_force, "settings-in-force.json"),
        (_json({"at_unix_ms": 5, "dropped": ["x"], "live_changes": []}),),
        Form.JSON_LINES,
        ("cli/settings_in_force.py",),
        (PenstockError,),
    ),
    Parser(
        "http-request",
        _http,
        (
            b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /readyz?x=1 HTTP/1.0\r\n\r\n",
            b"POST /readyz HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcde",
        ),
        Form.BYTES,
        ("telemetry/health.py", "telemetry/guarded_server.py"),
    ),
)
