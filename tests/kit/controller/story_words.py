"""The words of a story's line: rows of partitions, pairs of names and values."""

from typing import Any

from penstock.messages import CycleMeasurement
from penstock.model import TopicPartition
from penstock.settings.tree import known_options


def partition_rows(text: str | None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for word in (text or "").split():
        if word != "nothing":
            name, _, rest = word.partition("@")
            epoch, _, offsets = rest.partition("+")
            partition = TopicPartition.parse(name)
            row = {"topic": partition.topic, "partition": partition.partition, "epoch": epoch}
            next_offset, _, end_offset = offsets.partition("/")
            row |= {"next_offset": int(next_offset)} if next_offset else {}
            row |= {"end_offset": int(end_offset)} if end_offset else {}
            rows.append(row)
    return rows


def answered_rows(text: str) -> list[dict[str, Any]]:
    """The rows of an answer. Of a partition that only starts, the ledger is not read yet."""
    owned, _, starting = text.partition(" and starts ")
    read = [{"next_offset": 0, **row} for row in partition_rows(owned)]
    return [*read, *partition_rows(starting)]


def full_option(name: str) -> str:
    """The full name of an option of `controller`, `packing` or `spark`."""
    sections = ("controller", "packing", "spark")
    return next(f"{one}.{name}" for one in sections if (one, name) in known_options())


def name_values(text: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (word.partition("=") for word in text.split())]


def chosen(text: str) -> tuple[dict[str, Any], dict[str, float]]:
    """Settings by their full names, and `calibrated.orders=100` by topic."""
    given = name_values(text)
    values = {full_option(n): as_value(x) for n, x in given if not n.startswith("calibrated.")}
    tried = {n.partition(".")[2]: float(x) for n, x in given if n.startswith("calibrated.")}
    return values, tried


def as_value(text: str) -> Any:
    if text in {"yes", "no"}:
        return text == "yes"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def report_values(text: str) -> dict[str, Any]:
    """What a report says beside its partitions.

    `alone=orders:70;payments:>5` is what it carries of topics alone, the second one at least.
    """
    values = {name: as_value(value) for name, value in name_values(text)}
    for name, since_ms_ago in (("waits_for", "waits_ms"), ("works_on", "works_ms")):
        if name in values:
            values[name] = {"what": values[name], "since_ms_ago": values.pop(since_ms_ago, 0)}
    if "alone" in values:
        shown = [one.partition(":") for one in str(values.pop("alone")).split(";")]
        values["topic_capacities"] = [
            {"topic": topic, "at_least_log_bytes_per_s": float(figure[1:])}
            if figure.startswith(">")
            else {"topic": topic, "capacity_log_bytes_per_s": float(figure)}
            for topic, _, figure in shown
        ]
    if "carried" in values:
        nothing = dict.fromkeys(CycleMeasurement.model_fields, 0)
        values["cycle"] = {**nothing, "log_bytes": values.pop("carried")}
    return values
