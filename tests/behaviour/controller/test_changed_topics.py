"""A capacity that was measured with another transformation is not kept as if it were right."""

from typing import Any

import pytest

from kit.controller.story import CATALOGUE, Storyteller
from penstock.controller.core.capacity import capacities_of, first_capacities, source_of
from penstock.controller.core.changed_topics import changed_by
from penstock.controller.core.inputs import NewSettings, Requested
from penstock.controller.core.state import KnownCapacity, RollOut
from penstock.messages import UpdateDeployments
from penstock.settings import Settings, changed_settings

MEASURED = (
    "settings capacity=auto consumers_max=1 calibrated.orders=100",
    "a controller starts with epoch 1",
    "deployed:",
    "deployed:",
    "speeds orders-0=40",
    "tick +500",
    "packed 1: orders-0",
    "consumer 1 reports",
    "consumer 1 started orders-0@1.1",
    "consumer 1 reports orders-0@1.1, alone=orders:80",
)


def known(teller: Storyteller) -> KnownCapacity:
    assert teller.state is not None
    return teller.state.capacities["orders"]


def asked(*lines: str, **fields: Any) -> Storyteller:
    """After these lines, a request that the settings allow."""
    teller = Storyteller()
    teller.settings = changed_settings(
        CATALOGUE, {"controller.allowed_transformations": ["shop:decode"]}
    )
    for line in lines:
        teller.tell(line)
    request = UpdateDeployments.model_validate({"request_id": "u1", **fields})
    teller.give(Requested(teller.now_ms, request))
    for line in ("the new deployment works", "tick +500"):
        teller.tell(line)
    return teller


def rolled_out(*while_new: str, **fields: Any) -> Storyteller:
    """Until consumer 2 has taken over from consumer 1, and the roll-out is done."""
    teller = asked(*MEASURED, **fields)
    assert (known(teller).bytes_per_s, known(teller).source) == (80, "measured")
    for line in (
        "tick +500",
        "consumer 2 reports",
        "consumer 1 stopped orders-0@1.1",
        "consumer 2 started orders-0@1.2",
        "tick +500",
        "consumer 1 is deleted",
        *while_new,
        "consumer 2 reports orders-0@1.2, behind_records=0",
    ):
        teller.tell(line)
    assert "  > answer u1: done" in teller.tell("tick +500")
    return teller


def test_a_new_transformation_makes_the_capacity_an_assumption() -> None:
    """The group stays as it is, says that it does not know, and takes the next measurement."""
    teller = rolled_out(transformations={"orders": "shop:decode"})
    assert known(teller) == KnownCapacity(80, 80, 80, "assumed")
    assert teller.state is not None
    assert source_of(teller.state) == "assumed"
    assert capacities_of(teller.state).of("orders") == 80
    teller.tell("consumer 2 reports orders-0@1.2, alone=orders:20")
    assert (known(teller).bytes_per_s, known(teller).source) == (20, "measured")


def test_what_new_consumers_have_shown_already_counts() -> None:
    """Without what those of the former transformation have shown."""
    shows = "consumer 2 reports orders-0@1.2, alone=orders:20"
    teller = rolled_out(shows, transformations={"orders": "shop:decode"})
    assert known(teller) == KnownCapacity(20, 20, 20, "measured")


def test_other_changes_leave_the_capacity_as_it_was_measured() -> None:
    """Another topic's transformation, or a restart of every consumer."""
    for fields in ({}, {"transformations": {"clicks": "shop:decode"}}):
        assert known(rolled_out(**fields)) == KnownCapacity(80, 80, 80, "measured")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (MEASURED, KnownCapacity(80, 80, 80, "measured")),
        (MEASURED[:-1], KnownCapacity(100, 100, 100, "calibrated")),
    ],
)
def test_a_roll_back_leaves_what_was_known(lines: tuple[str, ...], expected: KnownCapacity) -> None:
    """The former transformation is in force again."""
    teller = asked(*lines, transformations={"orders": "shop:decode"})
    teller.tell("consumer 2 cannot be created: no such image")
    assert "  > answer u1: failed" in teller.tell("tick +500")
    assert known(teller) == expected


def with_tables(**tables: dict[str, str]) -> Settings:
    return changed_settings(Settings(), {"lake.tables": tables})


def test_new_settings_change_the_topics_whose_tables_differ() -> None:
    """Added, removed and changed ones."""
    before = with_tables(a={"transformation": "x:a"}, b={"transformation": "x:b"}, c={})
    after_it = with_tables(a={"transformation": "x:a"}, b={"transformation": "x:c"}, d={})
    request = UpdateDeployments(request_id="u1", transformations={"e": "x:e"})
    one = RollOut(request, 1, 1, new_settings=NewSettings(after_it), former_settings=before)
    assert changed_by(one) == {"b", "c", "d", "e"}
    assert changed_by(RollOut(request, 1, 1, new_settings=NewSettings(after_it))) == {"e"}


def test_a_calibration_wins_over_an_assumption() -> None:
    """And over nothing that was measured."""
    saved = {
        "orders": KnownCapacity(80, 80, 80, "assumed"),
        "clicks": KnownCapacity(70, 60, 80, "measured"),
    }
    found = first_capacities(saved, {"orders": 20.0, "clicks": 20.0})
    assert found["orders"] == KnownCapacity(20, 20, 20, "calibrated")
    assert found["clicks"] == saved["clicks"]
