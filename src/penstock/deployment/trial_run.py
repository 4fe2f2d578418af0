"""Runs `penstock try` as a consumer would be run: the same program, settings and environment.

It is a process of its own, because Spark and the user's code stay in a process for good.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.deployment.interface import TrialOutcome
from penstock.errors import UnreachableError
from penstock.model.json_text import read_json
from penstock.model.sentences import cut_at_word, duration_text

_REASON_CHARACTERS_MAX = 600
# Faster than any disk.
_BYTES_PER_S_MAX = 1e15


def run_trial(
    flags: Sequence[str], environment: Mapping[str, str] | None = None, *, timeout_s: float
) -> TrialOutcome:
    """Try the lake and every transformation of the settings that these flags give."""
    # Ends with this process, also if that is killed.
    guard = [sys.executable, "-m", "penstock.processes.die_with_parent", str(os.getpid())]
    command = [*guard, sys.executable, "-m", "penstock", "try", "-o", "json", *flags]
    try:
        done = subprocess.run(
            command,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return TrialOutcome(
            doubt="whether the lake can be written and the transformations work is not known: the "
            f"trial of them was not over within {duration_text(timeout_s)} "
            "(controller.trial_timeout)"
        )
    return outcome_of(done.returncode, done.stdout, done.stderr)


def outcome_of(exit_code: int, output: str, errors: str) -> TrialOutcome:
    """What the program's answer means. What nobody can reach now says nothing about a template."""
    try:
        return _answered(read_json(output))
    except (ValueError, LookupError, TypeError, AttributeError):  # the user's code may print, too
        return _without_an_answer(exit_code, errors)


def _answered(found: Any) -> TrialOutcome:
    wrong = [one for one in found if not one["ok"]]
    lasting = [one for one in wrong if one["exit_code"] != UnreachableError.exit_code]
    for one in lasting:
        reason = f"{one['explanation']} {one['remedy']}".strip()
        return TrialOutcome(cut_at_word(reason, _REASON_CHARACTERS_MAX), int(one["exit_code"]))
    for one in wrong:
        return TrialOutcome(note=cut_at_word(str(one["explanation"]), _REASON_CHARACTERS_MAX))
    doubtful = [one for one in found if one.get("is_doubtful")]
    return TrialOutcome(
        doubt=_first([one for one in doubtful if not one.get("stops_some")]),
        warning=_first([one for one in doubtful if one.get("stops_some")]),
        capacities={
            str(one["topic"]): float(one["bytes_per_s"])
            for one in found
            if 1 <= (one.get("bytes_per_s") or 0) <= _BYTES_PER_S_MAX
        },
        at_least=frozenset(str(one["topic"]) for one in found if one.get("is_at_least")),
    )


def _first(found: Sequence[Mapping[str, Any]]) -> str:
    return cut_at_word(str(found[0]["explanation"]), _REASON_CHARACTERS_MAX) if found else ""


def _without_an_answer(exit_code: int, errors: str) -> TrialOutcome:
    """It ended before it could say anything.

    With exit code 0 the user's own code has ended it, and would end every consumer. What else
    ended it may be a fault of the trial, or a lack of memory: a start goes on with the doubt.
    """
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    last = cut_at_word(lines[-1] if lines else "it said nothing", _REASON_CHARACTERS_MAX)
    if exit_code == UnreachableError.exit_code:
        return TrialOutcome(note=f"it could not be tried: {last}")
    ended = f"the trial ended with exit code {exit_code} before it had an answer: {last}"
    if exit_code != 0:
        return TrialOutcome(doubt=ended)
    return TrialOutcome(f"A transformation ends the process that imports or runs it: {ended}", 1)
