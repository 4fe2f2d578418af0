"""The two ways in which a table is committed to, and how a test disturbs either of them."""

from collections.abc import Callable
from typing import Any

import pytest
from deltalake import DeltaTable

from penstock.pipeline.lake_commit import LakeTable
from penstock.pipeline.log_commit import WaitingEntry

# By our own entry; by deltalake, where a log is not understood by us.
WAYS = ("entry", "deltalake")
_PUTS = ((WaitingEntry, "put_at"), (DeltaTable, "create_write_transaction"))


def commit_by(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Make all tables commit in this way."""
    monkeypatch.setattr(LakeTable, "_puts_entries", way == "entry")


def disturb_commits(
    monkeypatch: pytest.MonkeyPatch, disturbed: Callable[[Callable[[], Any]], Any]
) -> None:
    """Give the step that makes a commit visible to `disturbed`, in whichever way it is done."""
    for owner, name in _PUTS:
        right = getattr(owner, name)

        def put(*given: Any, _right: Any = right, **named: Any) -> Any:
            return disturbed(lambda: _right(*given, **named))

        monkeypatch.setattr(owner, name, put)
