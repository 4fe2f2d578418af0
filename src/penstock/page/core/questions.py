"""From the options behind an address to a question. What is not understood is refused in words."""

from collections.abc import Mapping, Sequence

from penstock.controller.core.decisions import Code
from penstock.model.topic_partition import is_topic_name
from penstock.page.core.answers import (
    HISTORY_DEFAULT,
    HISTORY_MAX,
    HistoryQuery,
    TimelineQuery,
)
from penstock.page.core.listing import (
    LIMIT_DEFAULT,
    LIMIT_MAX,
    MARKS,
    SORTS,
    STATES,
    BadQueryError,
    PartitionQuery,
)
from penstock.page.core.timeline import POINTS_DEFAULT, POINTS_MAX

POINTS_MIN = 10
# In the year 2255: whatever is later is not a time in milliseconds.
TIME_MAX = 9_000_000_000_000
Given = Mapping[str, Sequence[str]]


def only(given: Given, *names: str) -> None:
    """Refuse an option that this route does not have: it is probably a slip of the pen."""
    for name in given:
        if name not in names:
            known = f"; it has {', '.join(names)}" if names else ""
            raise BadQueryError(f"This route has no option {name[:40]!r}{known}.")


def _one(given: Given, name: str) -> str | None:
    values = given.get(name, ())
    if len(values) > 1:
        raise BadQueryError(f"`{name}` may be given once.")
    return values[0] if values else None


def whole_number(name: str, text: str, least: int, most: int) -> int:
    if text.isascii() and text.isdigit() and len(text) <= len(str(most)):
        number = int(text)
        if least <= number <= most:
            return number
    raise BadQueryError(f"{name} is a whole number from {least} to {most}.")


def _number(given: Given, name: str, least: int, most: int, otherwise: int) -> int:
    text = _one(given, name)
    return otherwise if text is None else whole_number(f"`{name}`", text, least, most)


def _among(given: Given, name: str, known: Sequence[str]) -> str | None:
    text = _one(given, name)
    if text is not None and text not in known:
        raise BadQueryError(f"`{name}` is one of {', '.join(known)}.")
    return text


def _topic(given: Given) -> str | None:
    topic = _one(given, "topic")
    if topic is not None and not is_topic_name(topic):
        raise BadQueryError("`topic` is the name of a Kafka topic.")
    return topic


def asks_for_partitions(given: Given) -> bool:
    only(given, "with")
    return _among(given, "with", ("partitions",)) is not None


def partition_query(given: Given) -> PartitionQuery:
    only(given, "topic", "consumer", "state", "sort", "limit", "after")
    consumer = _one(given, "consumer")
    return PartitionQuery(
        topic=_topic(given),
        consumer=None if consumer is None else whole_number("`consumer`", consumer, 0, 2**31),
        state=_among(given, "state", (*STATES, *MARKS)),
        sort=_among(given, "sort", SORTS) or "name",
        limit=_number(given, "limit", 1, LIMIT_MAX, LIMIT_DEFAULT),
        after=_one(given, "after"),
    )


def history_query(given: Given) -> HistoryQuery:
    only(given, "code", "since", "limit")
    codes = frozenset(given.get("code", ()))
    known = {code.value for code in Code}
    if unknown := sorted(codes - known):
        raise BadQueryError(f"There is no code {unknown[0][:40]!r}; /v1/history counts them all.")
    return HistoryQuery(
        codes=codes,
        since_unix_ms=_number(given, "since", 0, TIME_MAX, 0),
        limit=_number(given, "limit", 1, HISTORY_MAX, HISTORY_DEFAULT),
    )


def timeline_query(given: Given) -> TimelineQuery:
    only(given, "from", "to", "points", "topic")
    begin, end = (
        None
        if (text := _one(given, name)) is None
        else whole_number(f"`{name}`", text, 0, TIME_MAX)
        for name in ("from", "to")
    )
    return TimelineQuery(
        from_unix_ms=begin,
        to_unix_ms=end,
        points=_number(given, "points", POINTS_MIN, POINTS_MAX, POINTS_DEFAULT),
        topic=_topic(given),
    )
