"""What the answer of `penstock try` means for those who start or replace consumers."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.deployment import TrialOutcome
from penstock.deployment.trial_run import outcome_of, run_trial


def _said(*findings: dict[str, Any]) -> str:
    usual = {"ok": True, "explanation": "", "remedy": "", "exit_code": 0}
    return json.dumps([{**usual, **one} for one in findings])


def test_all_is_well() -> None:
    """No finding is wrong."""
    assert outcome_of(0, _said({}, {}), "") == TrialOutcome()


def test_what_was_timed_is_kept() -> None:
    """What was not, or cannot be, is left out."""
    timed = [{"topic": t, "bytes_per_s": x} for t, x in (("a", 2e6), ("b", None), ("c", 1e300))]
    assert outcome_of(0, _said({}, *timed), "") == TrialOutcome(capacities={"a": 2e6})


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
    ("output", "errors", "last"),
    [
        ("", "Traceback\n  x\nKeyError: 3\n\n", "KeyError: 3"),
        ("3", "", "it said nothing"),
        ("[3]", "", "it said nothing"),
    ],
)
def test_a_program_that_fails_itself_is_a_doubt(output: str, errors: str, last: str) -> None:
    """Its last line says why: a start goes on with it, a roll-out does not."""
    found = outcome_of(1, output, errors)
    assert (found.refusal, found.note) == ("", "")
    assert found.doubt.endswith(f"exit code 1 before it had an answer: {last}")
    assert outcome_of(-9, output, errors).doubt.endswith(last)


def test_a_broker_that_is_away_before_the_trial_begins_says_nothing() -> None:
    """It is as with what the trial itself cannot reach."""
    assert outcome_of(4, "", "no broker").note == "it could not be tried: no broker"


def test_code_that_ends_the_trial_is_refused() -> None:
    """It would end every consumer: nothing of ours ends with 0 and no answer."""
    found = outcome_of(0, "", "")
    assert "ends the process" in found.refusal
    assert found.exit_code == 1


def test_what_works_and_is_probably_a_mistake_is_a_doubt() -> None:
    """All records would be dead letters: a start goes on with it, a roll-out does not."""
    said = _said({"is_doubtful": True, "explanation": "all would be dead letters"}, {})
    assert outcome_of(0, said, "") == TrialOutcome(doubt="all would be dead letters")


def test_partitions_that_would_stop_are_a_warning_of_their_own() -> None:
    """The old consumers may not carry them either, so a roll-out goes on: it may mend others."""
    one = {"is_doubtful": True, "stops_some": True, "explanation": "1 partition would stop"}
    found = outcome_of(0, _said(one, {}), "")
    assert found == TrialOutcome(warning="1 partition would stop")
    both = outcome_of(0, _said(one, {"is_doubtful": True, "explanation": "all dead"}), "")
    assert both == TrialOutcome(doubt="all dead", warning="1 partition would stop")


def test_a_trial_that_hangs_is_ended() -> None:
    """After its time it is a doubt: no roll-out goes on with it. It says what is not known."""
    doubt = run_trial([], timeout_s=0.01).doubt
    assert doubt.startswith("whether the lake can be written and the transformations work is not")
    assert doubt.endswith("not over within 0 s (controller.trial_timeout)")


def test_a_missing_module_is_found_in_a_process_of_its_own(tmp_path: Any) -> None:
    """The flags are those of the consumers."""
    tables = {"orders": {"transformation": "no_such_module:decode"}}
    flags = ["--set", f"lake.root={tmp_path / 'lake'}"]
    found = run_trial([*flags, "--set", f"lake.tables={json.dumps(tables)}"], timeout_s=180)
    assert found.exit_code == 3
    assert "no_such_module:decode cannot be imported" in found.refusal
    assert sys.executable in found.refusal


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os\nos._exit(0)\n", "ends the process"),
        ("print('hello')\nimport os\nos.system('echo hello')\n", "no_function cannot be imported"),
    ],
)
def test_what_a_module_does_with_the_process_does_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    """It ends the process, or writes where the answer is read."""
    (tmp_path / "odd_module.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    tables = {"orders": {"transformation": "odd_module:no_function"}}
    flags = ["--set", f"lake.root={tmp_path / 'lake'}"]
    found = run_trial([*flags, "--set", f"lake.tables={json.dumps(tables)}"], timeout_s=180)
    assert said in found.refusal, found
