"""A changed value is a new one, equal to what `dataclasses.replace` makes."""

from dataclasses import dataclass, field, replace

import pytest

from penstock.model.changed import changed


@dataclass(frozen=True)
class Speed:
    bytes_per_s: float
    names: tuple[str, ...] = ()
    limits: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Slotted:
    number: int


def test_only_the_named_fields_differ() -> None:
    """The others are the same objects, and the first value stays as it was."""
    first = Speed(1.0, ("a",), {"b": 2})
    second = changed(first, bytes_per_s=2.0)
    assert second == replace(first, bytes_per_s=2.0)
    assert type(second) is Speed
    assert second.limits is first.limits
    assert first == Speed(1.0, ("a",), {"b": 2})


def test_a_field_that_does_not_exist_is_refused() -> None:
    """A mistyped name is an error that names it."""
    with pytest.raises(TypeError, match="Speed has no byte_per_s"):
        changed(Speed(1.0), byte_per_s=2.0)  # type: ignore[call-arg]


def test_a_value_with_slots_is_refused() -> None:
    """It has no dictionary to copy."""
    with pytest.raises(AttributeError, match="__dict__"):
        changed(Slotted(1), number=2)
