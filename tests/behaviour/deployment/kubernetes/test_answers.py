"""What the API server answers is of the right shape, or refused."""

import json
from typing import Any

import pytest

from penstock.deployment.kubernetes.core.answers import read_change, read_list, read_object
from penstock.deployment.kubernetes.core.refusals import ApiUnavailableError

METADATA = {"name": "a", "uid": "u", "labels": {"b": "c"}, "annotations": None}
OBJECT = {"metadata": METADATA, "status": {"conditions": [{"type": "Ready"}], "phase": "Running"}}


def body(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_objects_lists_and_changes_are_read_as_they_are() -> None:
    """Whatever else they have stays in them."""
    more = {**OBJECT, "spec": {"replicas": 1, "other": [5]}, "kind": "Pod"}
    assert read_object(body(more)) == more
    page = {"metadata": {"resourceVersion": "5"}, "items": [more]}
    assert read_list(body(page)) == page
    empty = {"metadata": {"resourceVersion": "5"}, "items": None}
    assert read_list(body(empty)) == empty
    for change in (
        {"type": "ADDED", "object": more},
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "5"}}},
        {"type": "ERROR", "object": {"code": 410}},
    ):
        assert read_change(body(change)) == change


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        {"metadata": {"name": "a"}},
        {"metadata": {**METADATA, "labels": {"b": 5}}},
        {"metadata": {**METADATA, "labels": ["b"]}},
        {**OBJECT, "spec": {"replicas": True}},
        {**OBJECT, "status": {"conditions": {}}},
        {**OBJECT, "status": {"conditions": [None]}},
        {**OBJECT, "status": {"containerStatuses": [{"state": {"waiting": {"reason": 5}}}]}},
    ],
)
def test_another_shape_is_refused(value: Any) -> None:
    """Alone, in a list and in a change: a call that is tried again, and no crash of a thread."""
    page = {"metadata": {"resourceVersion": "5"}, "items": [value]}
    for read, said in (
        (read_object, value),
        (read_list, page),
        (read_change, {"type": "MODIFIED", "object": value}),
    ):
        with pytest.raises(ApiUnavailableError, match="Kubernetes answered with"):
            read(body(said))


@pytest.mark.parametrize(
    "value",
    [
        {"items": [OBJECT]},
        {"type": "NEWS", "object": OBJECT},
        {"type": ["ADDED"], "object": OBJECT},
        {"type": "ADDED"},
        {"type": "ERROR", "object": {"code": "410"}},
    ],
)
def test_lists_without_a_version_and_unknown_changes_are_refused(value: Any) -> None:
    """A watch cannot go on from them."""
    for read in (read_list, read_change):
        with pytest.raises(ApiUnavailableError):
            read(body(value))


def test_a_proxy_that_answers_in_words_is_refused() -> None:
    """As an outage, which is tried again."""
    with pytest.raises(ApiUnavailableError, match="not JSON"):
        read_object(b"<html>Bad Gateway</html>")
