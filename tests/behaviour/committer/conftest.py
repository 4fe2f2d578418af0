"""A consumer's part in commits for many, for the tests of this folder."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.committer import CommitsTogether
from penstock.pipeline.batch import Writer
from penstock.settings import Settings, changed_settings


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommitsTogether:
    """A consumer's part, without a broker."""
    changes = {"lake.root": str(tmp_path), "lake.group": "g", "lake.commits": "together"}
    part = CommitsTogether(changed_settings(Settings(), changes), Writer(4, 1))
    silent = SimpleNamespace(send=lambda _: None, flush=lambda _: None, poll=lambda: None)
    monkeypatch.setattr(part, "_send_to", lambda: silent)
    monkeypatch.setattr(part._serving, "_sender", lambda: silent)
    monkeypatch.setattr(part._answers, "listen", lambda _: None)
    return part
