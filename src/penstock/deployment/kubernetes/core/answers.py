"""Reads what the API server answers, and refuses what has not the shape of its objects. Pure.

Everything else here trusts these shapes. Between us and the server may be a proxy that answers for
it, or a server that speaks another version.
"""

from typing import Any

from penstock.deployment.kubernetes.core.refusals import ApiUnavailableError
from penstock.model.json_text import read_json

Object = dict[str, Any]
# A type, a mapping of names to shapes (`*` for all names), or a list of one shape. What is absent
# fits; so does null in place of a mapping or a list, which Go writes for an empty one.
_TEXTS = {"*": str}
_END = {"reason": str, "exitCode": int, "message": str}
_CONTAINER_STATE = {"waiting": {"reason": str, "message": str}, "terminated": _END}
_CONTAINERS = [
    {"name": str, "restartCount": int, "state": _CONTAINER_STATE, "lastState": _CONTAINER_STATE}
]
_CONDITIONS = [
    {"type": str, "status": str, "reason": str, "message": str, "lastTransitionTime": str}
]
_OBJECT = {
    "metadata": {
        "name": str,
        "uid": str,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "resourceVersion": str,
        "creationTimestamp": str,
        "deletionTimestamp": str,
    },
    "spec": {"replicas": int},
    "status": {
        "phase": str,
        "reason": str,
        "message": str,
        "conditions": _CONDITIONS,
        "containerStatuses": _CONTAINERS,
        "initContainerStatuses": _CONTAINERS,
    },
}
_LIST = {"metadata": {"continue": str, "resourceVersion": str}, "items": [_OBJECT]}
_CHANGES = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"})


def read_object(body: bytes) -> Object:
    """One object of the server. ApiUnavailableError for anything else."""
    found = _json(body)
    _require(found, _OBJECT)
    _require_identity(found)
    return found


def read_list(body: bytes) -> Object:
    """A page of a list: `items`, and `metadata` with the list's version."""
    found = _json(body)
    _require(found, _LIST)
    if not isinstance((found.get("metadata") or {}).get("resourceVersion"), str):
        raise _not_understood("a list without a version")
    for one in found.get("items") or []:
        _require_identity(one)
    return found


def read_change(line: bytes) -> Object:
    """A line of a watch: `type` and `object`."""
    found = _json(line)
    kind = found.get("type")
    if not isinstance(kind, str) or kind not in _CHANGES:
        raise _not_understood("a change of no known type")
    if not isinstance(found.get("object"), dict):
        raise _not_understood("a change of nothing")
    if kind == "ERROR":
        _require(found["object"], {"code": int})
    else:
        _require(found["object"], _OBJECT)
    if kind not in {"ERROR", "BOOKMARK"}:
        _require_identity(found["object"])
    return found


def _json(body: bytes) -> Object:
    try:
        found = read_json(body)
    except ValueError:
        raise _not_understood("something that is not JSON") from None
    if not isinstance(found, dict):
        raise _not_understood("something that is not an object")
    return found


def _require_identity(one: Object) -> None:
    metadata = one.get("metadata") or {}
    if not metadata.get("name") or not metadata.get("uid"):
        raise _not_understood("an object without a name")


def _require(value: Any, shape: Any, place: str = "it") -> None:
    if isinstance(shape, type):
        # A truth value is a number in Python.
        if not isinstance(value, shape) or isinstance(value, bool):
            raise _not_understood(f"{place}, which should be {shape.__name__}")
        return
    if value is not None and not isinstance(value, type(shape)):
        raise _not_understood(f"{place}, which should be a {type(shape).__name__}")
    if isinstance(shape, list):
        for one in value or []:
            if one is None:
                raise _not_understood(f"{place}, which has an empty entry")
            _require(one, shape[0], place)
        return
    every = shape.get("*")
    for name, below in (value or {}).items():
        expected = every or shape.get(name)
        if expected is not None:
            _require(below, expected, name if every is None else place)


def _not_understood(what: str) -> ApiUnavailableError:
    return ApiUnavailableError(f"Kubernetes answered with {what}.")
