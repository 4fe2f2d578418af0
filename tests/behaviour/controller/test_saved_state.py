"""The state as bytes: whole or not at all, and never a reason to fall over."""

import pytest

from kit.controller.story import CATALOGUE, TWO_CONSUMERS, after
from penstock.controller.core.saved_state import decode_state, encode_state, state_as_json
from penstock.controller.core.state import BoundsRequest, State
from penstock.model.epoch import INTEGER_MAX
from penstock.state_directory import BrokenState, state_file


def rich_state() -> State:
    """In the middle of a move, with a pause, a roll-out and changed settings."""
    teller = after(
        "settings deployment=kubernetes",
        *TWO_CONSUMERS,
        "request p: pause direction=down reason=sale",
        "request s: settings consumers_max=9",
        "request u: update",
        "3000 ms pass",
        "speeds orders-0=40 orders-1=80 orders-2=20",
        "tick +500",
        "packed 1: orders-0; 2: orders-1 orders-2",
    )
    assert teller.state is not None
    return teller.state


def test_what_matters_comes_back() -> None:
    """Numbers that only rise, holdings, plan, pauses, roll-out, overrides and history."""
    state = rich_state()
    read = decode_state(encode_state(state), CATALOGUE)
    assert isinstance(read, State)
    for name in (
        "phase",
        "controller_epoch",
        "plan_number",
        "epochs_used",
        "overrides",
        "incarnation_floor",
        "held_by",
        "in_flight",
        "pauses",
        "requests",
        "history",
        "counts",
        "deployment_version",
    ):
        assert getattr(read, name) == getattr(state, name), name
    assert {p: h.epoch for p, h in read.holdings.items()} == {
        p: h.epoch for p, h in state.holdings.items()
    }
    assert read.plan is not None
    assert state.plan is not None
    assert (read.plan.target, read.plan.open) == (state.plan.target, state.plan.open)
    assert read.roll_out is not None
    assert state.roll_out is not None
    assert read.roll_out.request == state.roll_out.request
    assert encode_state(read) == encode_state(state)


def test_a_state_without_plan_comes_back_too() -> None:
    """As it is right after the first start."""
    state = after("a controller starts with epoch 1").state
    assert state is not None
    assert isinstance(decode_state(encode_state(state), CATALOGUE), State)


def test_every_damage_is_seen() -> None:
    """Truncated, empty, a flipped bit, another version, another file: refused, never raised."""
    good = encode_state(rich_state())
    head, _, body = good.partition(b"\n")
    flipped = good[:-10] + bytes([good[-10] ^ 1]) + good[-9:]
    for raw in (b"", b"\n", good[:100], good[:-2], flipped, b"x" * 50, b"\x00" + good):
        assert isinstance(decode_state(raw, CATALOGUE), BrokenState), raw[:30]
    other_version = decode_state(head.replace(b" 1 ", b" 2 ") + b"\n" + body, CATALOGUE)
    assert isinstance(other_version, BrokenState)
    assert "version" in other_version.why


@pytest.mark.parametrize(
    "change",
    [
        {"phase": "Dancing"},
        {"controller_epoch": "x"},
        {"controller_epoch": INTEGER_MAX},
        {"controller_epoch": -1},
        {"plan_number": INTEGER_MAX},
        {"epochs_used": INTEGER_MAX},
        {"queries_sent": INTEGER_MAX},
        {"deployment_version": INTEGER_MAX},
        {"incarnation_floor": {"1": INTEGER_MAX}},
        {"holdings": {"no-partition": [1, 1, "1.1", "owned"]}},
        {"holdings": {"t-0": [1]}},
        {"history": 3},
        {"roll_out": {"request": {}, "version": 1, "total": 1}},
        {"overrides": None},
        {"pauses": [["sideways", None, "", ""]]},
    ],
)
def test_content_that_makes_no_sense_is_refused(change: dict[str, object]) -> None:
    """A right checksum over wrong content is still not a state."""
    content = state_as_json(rich_state()) | change
    broken = decode_state(state_file.encode_state("controller", content), CATALOGUE)
    assert isinstance(broken, BrokenState)
    assert broken.why.startswith("a field is wrong")


def test_a_file_too_large_is_not_even_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Size before content."""
    monkeypatch.setattr(state_file, "STATE_BYTES_MAX", 10)
    assert isinstance(decode_state(encode_state(rich_state()), CATALOGUE), BrokenState)


def test_the_state_of_an_older_release_is_read() -> None:
    """It had the settings in it and knew of no unfinished bounds; pauses and overrides live on."""
    content = state_as_json(rich_state()) | {"settings": {"look_ahead_ms": 0}}
    del content["bounds_requests"]
    state = decode_state(state_file.encode_state("controller", content), CATALOGUE)
    assert isinstance(state, State)
    assert state.overrides == rich_state().overrides
    assert state.pauses == rich_state().pauses
    assert state.bounds_requests == ()


def test_a_bounds_request_of_an_older_release_wants_the_saved_bounds() -> None:
    """It saved only the id of the request: what is wanted comes from the overrides."""
    content = state_as_json(rich_state())
    content["overrides"] = {"consumers_max": 3, "spare_consumers": 1}
    content["bounds_requests"] = ["m"]
    state = decode_state(state_file.encode_state("controller", content), CATALOGUE)
    assert isinstance(state, State)
    assert state.bounds_requests == (BoundsRequest("m", {"consumers_max": 3}),)
