"""Decision codes, stop reasons and log events in the operators' pages exist in the code."""

import ast
import re
from functools import cache

import pytest

from documents import ROOT
from penstock.controller.core.decisions import Code
from penstock.messages import StopReason
from penstock.metrics.catalogue import METRICS
from penstock.packing.trigger import Reason

PAGES = ("troubleshooting.md", "operating.md")
# A name alone in backticks, or one that opens a quoted line of a log.
NAME = re.compile(r"`([a-z]+(?:_[a-z]+)+)(?=[` ])")
ENUMS = {"Code": Code, "StopReason": StopReason, "Reason": Reason}


@cache
def names_in_the_code() -> frozenset[str]:
    """Texts that are given to a call, metrics, and members of the enums that some line uses.

    A member that is declared and used nowhere is never seen by an operator.
    """
    names: set[str] = {metric.name for metric in METRICS}
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                texts = [one.value for one in node.args if isinstance(one, ast.Constant)]
                names.update(text for text in texts if isinstance(text, str))
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                members = ENUMS.get(node.value.id)
                if members is not None and node.attr in members.__members__:
                    names.add(str(members[node.attr]))
    return frozenset(names)


@pytest.mark.parametrize("page", PAGES)
def test_every_event_on_a_page_is_in_the_code(page: str) -> None:
    """A code, a reason or an event that was renamed is renamed on the page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert set(NAME.findall(text)) - names_in_the_code() == set()


def test_an_unknown_event_is_found() -> None:
    """Names that nothing writes, and members that are only declared, are not in the code."""
    text = "`held_by_noise` `lake_unavailable` `batch_put_off ... error` `over_capacity`"
    found = NAME.findall(text)
    assert found == ["held_by_noise", "lake_unavailable", "batch_put_off", "over_capacity"]
    assert [one for one in found if one not in names_in_the_code()] == found[:2]
