"""What a status must have so that every answer can be made of it, by the page and by a command.

Whoever may write to the status topic, or to the controller's folder, decides what is read. So it is
looked at once, before anything is kept of it: behind this, nothing can fail because a figure is a
text. Fields that nothing computes with are shown as they are, whatever they are.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from penstock.errors import PenstockError
from penstock.page.core.view import Json

Check = Callable[[Any], bool]
# Of a signed number of 64 bits. Sums and products of some of these are still finite.
FIGURE_MAX = 2**63
# Figures are divided by capacities and objectives: nothing that is meant is smaller.
POSITIVE_MIN = 1e-6
# How much a topic counts is a quotient of two capacities, which may differ as much as they can.
WEIGHT_MIN = 1 / FIGURE_MAX
# The last one that a date can be made of.
UNIX_MS_MAX = 253_402_300_799_999
# Of the number behind a partition's name.
DIGITS_MAX = 10
NAMES_KEPT = 16_384
_NUMBERS = (int, float)


class StatusNotUnderstoodError(PenstockError):
    """A status that no controller of ours has written, or one of a release far from this one."""


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, _NUMBERS) and -FIGURE_MAX <= value <= FIGURE_MAX and not _is_bool(value)
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and -FIGURE_MAX <= value <= FIGURE_MAX and not _is_bool(value)


def _is_unix_ms(value: Any) -> bool:
    return _is_whole(value) and 0 <= value <= UNIX_MS_MAX


def _is_bool(value: Any) -> bool:
    """It is an int for `isinstance`, and is none in JSON."""
    return value is True or value is False


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value >= POSITIVE_MIN


def _is_capacity(value: Any) -> bool:
    """None is known yet where it is 0."""
    return _is_number(value) and (value == 0 or value >= POSITIVE_MIN)


def _is_load(value: Any) -> bool:
    return _is_number(value) and value >= 0


def _is_weight(value: Any) -> bool:
    return _is_number(value) and value >= WEIGHT_MIN


def _is_name(value: Any) -> bool:
    """Of a partition: `orders-3`. Which topics there are, nobody knows here."""
    return isinstance(value, str) and _names_a_partition(value)


@lru_cache(maxsize=NAMES_KEPT)
def _names_a_partition(text: str) -> bool:
    """The same ten thousand come again in every status, five times each."""
    topic, _, number = text.rpartition("-")
    return bool(topic) and len(number) <= DIGITS_MAX and number.isascii() and number.isdigit()


def _is_number_as_text(value: Any) -> bool:
    return _is_text(value) and len(value) <= DIGITS_MAX and value.isascii() and value.isdigit()


def _maybe(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(check(one) for one in value)


def _by(name: Check, check: Check) -> Check:
    return lambda value: (
        isinstance(value, dict) and all(name(key) and check(one) for key, one in value.items())
    )


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_single(value: Any) -> bool:
    """Consumers are told apart by it."""
    return not isinstance(value, dict | list)


def _is_there(_: Any) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class _Record:
    needed: Mapping[str, Check]
    # What older controllers leave out, and what is left out where it is unknown.
    optional: Mapping[str, Check] = field(default_factory=dict)

    def require(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(where)
        for name, check in self.needed.items():
            if name not in value or not check(value[name]):
                raise _wrong(f"{where}.{name}")
        for name, check in self.optional.items():
            if name in value and not check(value[name]):
                raise _wrong(f"{where}.{name}")

    def require_each(self, values: Iterable[Any], where: str) -> None:
        for place, value in enumerate(values):
            self.require(value, f"{where}[{place}]")


_figure, _or_none = _is_number, _maybe(_is_number)
_STATUS = _Record(
    needed={
        "at_unix_ms": _is_unix_ms,
        "age_s": _figure,
        "is_stale": _is_there,
        "phase": _is_text,
        "phase_for_ms": _figure,
        "controller_epoch": _is_there,
        "plan_number": _is_there,
        "conditions": _list_of(_is_object),
        "measurement_age_ms": _or_none,
        "capacity_bytes_per_s": _is_capacity,
        "target_utilisation": _figure,
        "settings": _is_object,
        "written_bytes_per_s": _figure,
        "behind_records": _or_none,
        "behind_bytes": _or_none,
        "behind_s": _or_none,
        "behind_is_at_most": _is_there,
        "behind_unknown": _is_whole,
        "consumers": _list_of(_is_object),
        "partitions": _by(_is_name, _is_object),
        "moves": _list_of(_is_object),
        "parked": _is_object,
        "parked_details": _is_object,
        "pauses": _is_there,
        "held_by_silence": _maybe(_is_object),
        "roll_out": _maybe(_is_object),
        "question": _is_object,
        "history": _list_of(_is_object),
    },
    optional={
        "reason": _maybe(_is_object),
        "capacity": _is_object,
        "carried_bytes": _figure,
        "carried_bytes_per_s": _or_none,
        "batch_s": _figure,
        "backlog": _maybe(_is_object),
        "freshness_s": _or_none,
        "freshness_at_least_s": _or_none,
        "objective_freshness_s": _or_none,
        "topic_ids": _by(_is_text, _is_text),
        "deployment": _maybe(_is_object),
    },
)
_CONDITION = _Record({"condition": _is_text, "reason": _is_text})
_ROLL_OUT = _Record(
    {"version": _is_there, "request_id": _is_there, "total": _is_whole, "left": _is_whole}
)
_DEPLOYMENT = _Record({"version": _is_there})
_SETTINGS = _Record(
    {
        "algorithm": _is_text,
        "consumers_min": _is_there,
        "consumers_max": _is_there,
        "spare_consumers": _is_there,
    }
)
_CONSUMER = _Record(
    needed={
        "consumer": _is_whole,
        "status": _is_text,
        "incarnation": _is_there,
        "deployment_version": _is_single,
        "heard_ms_ago": _or_none,
        "load_bytes_per_s": _figure,
        "capacity_bytes_per_s": _is_capacity,
        "measured_capacity_bytes_per_s": _or_none,
        "behind_records": _or_none,
        "behind_bytes": _or_none,
        "behind_s": _or_none,
        "partitions": _list_of(_is_name),
    },
    optional={"carried_bytes": _or_none},
)
_PARTITION = _Record(
    needed={
        "write_speed_bytes_per_s": _or_none,
        "consumer": _maybe(_is_whole),
        "status": _is_text,
    },
    optional={
        "behind_records": _or_none,
        "behind_bytes": _or_none,
        "start_offset": _or_none,
        "next_offset": _or_none,
        "end_offset": _or_none,
    },
)
_MOVE = _Record({"partition": _is_name, "at": _is_there, "to": _is_there, "status": _is_there})
_DECISION = _Record(
    {
        "code": _is_text,
        "explanation": _is_text,
        "plan": _is_there,
        "moves": _is_there,
        "moved_bytes_per_s": _is_there,
        "times": _figure,
        "age_ms": _figure,
        "first_age_ms": _figure,
    }
)
_REASON = _Record({"code": _is_there, "explanation": _is_there})
_HELD = _Record({"consumers": _list_of(_is_there)})
_BACKLOG = _Record({"trend": _is_there, "left_s": _or_none})
_CAPACITY = _Record({"bytes_per_s": _figure, "source": _is_text, "topics": _is_object})
_CAPACITY_OF_TOPIC = _Record(
    {
        "bytes_per_s": _figure,
        "source": _is_text,
        "measured_bytes_per_s": _or_none,
        "lowest_bytes_per_s": _or_none,
        "highest_bytes_per_s": _or_none,
    }
)
_LOADS = _by(_is_name, _is_load)
_QUESTION = _Record(
    needed={
        "load_bytes_per_s": _LOADS,
        "current": _by(_is_number_as_text, _list_of(_is_name)),
        "capacity_bytes_per_s": _is_capacity,
        "capacity_bytes_per_s_by_consumer": _by(_is_number_as_text, _is_capacity),
        "forecast_bytes_per_s": _LOADS,
    },
    # Without those that the packer needs there is no plan, and all else is shown.
    optional={
        "partitions_per_consumer_max": _maybe(_is_whole),
        "consumers_max": _maybe(_is_whole),
        "weights": _by(_is_text, _is_weight),
        "objective": _is_object,
    },
)
_OBJECTIVE = _Record(
    needed={
        "freshness_s": _is_positive,
        "share": _figure,
        "start_s": _or_none,
        "rise": _or_none,
        "target_utilisation": _is_positive,
        "spare_consumers": _is_whole,
        "are_set": _list_of(_is_text),
    },
    optional={"rare_rise": _or_none},
)
_PARTS = (
    ("reason", _REASON),
    ("held_by_silence", _HELD),
    ("backlog", _BACKLOG),
    ("roll_out", _ROLL_OUT),
    ("deployment", _DEPLOYMENT),
)


def require_shape(status: Json) -> None:
    """StatusNotUnderstoodError names the first field that is missing or is something else."""
    _STATUS.require(status, "status")
    _SETTINGS.require(status["settings"], "settings")
    _QUESTION.require(status["question"], "question")
    if "objective" in status["question"]:
        _OBJECTIVE.require(status["question"]["objective"], "question.objective")
    _CONSUMER.require_each(status["consumers"], "consumers")
    for name, partition in status["partitions"].items():
        _PARTITION.require(partition, name)
    _MOVE.require_each(status["moves"], "moves")
    _DECISION.require_each(status["history"], "history")
    _CONDITION.require_each(status["conditions"], "conditions")
    for name, record in _PARTS:
        if status.get(name) is not None:
            record.require(status[name], name)
    if status.get("backlog") and status["behind_records"] is None:
        raise _wrong("status.behind_records")
    if status.get("capacity"):
        _CAPACITY.require(status["capacity"], "capacity")
        _CAPACITY_OF_TOPIC.require_each(status["capacity"]["topics"].values(), "capacity.topics")


def _wrong(where: str) -> StatusNotUnderstoodError:
    return StatusNotUnderstoodError(
        f"The status of the group cannot be understood: {where[:100]!r} is missing or wrong.",
        remedy="Is its controller of another release? Else see who may write to the status topic "
        "and to the controller's folder.",
    )
