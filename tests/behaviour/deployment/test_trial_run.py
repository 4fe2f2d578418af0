"""What the answer of `penstock try` means for those who start or replace consumers."""

import json
import sys
from typing import Any

import pytest

from penstock.deployment import TrialOutcome, trial_run
from penstock.deployment.trial_run import outcome_of, run_trial


def _said(*findings: dict[str, Any]) -> str:
    usual = {"ok": True, "explanation": "", "remedy": "", "exit_code": 0}
    return json.dumps([{**usual, **one} for one in findings])


def test_all_is_well() -> None:
    """No finding is wrong."""
    assert outcome_of(0, _said({}, {}), "") == TrialOutcome()


def test_the_first_lasting_failure_is_the_refusal() -> None:
    """With its remedy and its exit code."""
    wrong = {"ok": False, "explanation": "no module", "remedy": "set it", "exit_code": 3}
    later = {"ok": False, "explanation": "later", "exit_code": 1}
    found = outcome_of(3, _said({}, wrong, later), "")
    assert found == TrialOutcome("no module set it", 3)


def test_what_nobody_reaches_says_nothing() -> None:
    """Kafka is away: the template may be as good as the one before."""
    away = {"ok": False, "explanation": "no broker answers", "exit_code": 4}
    assert outcome_of(4, _said(away), "") == TrialOutcome(note="no broker answers")


@pytest.mark.parametrize(
    ("output", "errors", "note"),
    [
        ("", "Traceback\n  x\nKeyError: 3\n\n", "it could not be tried: KeyError: 3"),
        ("3", "", "it could not be tried: exit code 1"),
        ("[3]", "", "it could not be tried: exit code 1"),
    ],
)
def test_a_program_that_fails_itself_is_no_refusal(output: str, errors: str, note: str) -> None:
    """Its last line says why."""
    found = outcome_of(1, output, errors)
    assert found.refusal == ""
    assert found.note.startswith(note[:40])


def test_what_works_and_is_hardly_meant_is_a_doubt() -> None:
    """All records would be dead letters: a start goes on with it, a roll-out does not."""
    said = _said({"is_doubtful": True, "explanation": "all would be dead letters"}, {})
    assert outcome_of(0, said, "") == TrialOutcome(doubt="all would be dead letters")


def test_a_trial_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """After its time it counts as not tried."""
    monkeypatch.setattr(trial_run, "TRIAL_S_MAX", 0.01)
    assert "not tried within" in run_trial([]).note


def test_a_missing_module_is_found_in_a_process_of_its_own(tmp_path: Any) -> None:
    """The flags are those of the consumers."""
    tables = {"orders": {"transformation": "no_such_module:decode"}}
    flags = ["--set", f"lake.root={tmp_path / 'lake'}"]
    found = run_trial([*flags, "--set", f"lake.tables={json.dumps(tables)}"])
    assert found.exit_code == 3
    assert "no_such_module:decode cannot be imported" in found.refusal
    assert sys.executable in found.refusal
