"""How `penstock try` shows rows to a person: whole where asked, and never with a cut name."""

from typing import Any

import pytest

from penstock.cli.try_topic import show
from penstock.pipeline.trial import TableChange, TopicTrial

LONG = '{"id": 7, "lines": [' + ", ".join(f'{{"sku": "s-{n}"}}' for n in range(30)) + "]}"


def trial(schema: dict[str, str], **rows: Any) -> TopicTrial:
    change = TableChange("orders", exists=False, columns_added=tuple(schema))
    return TopicTrial("orders", 1, 1, schema, change, **rows)


def shown(found: TopicTrial, capsys: pytest.CaptureFixture[str], **how: bool) -> tuple[str, str]:
    show(found, is_oldest=False, **how)
    printed = capsys.readouterr()
    return printed.out, printed.err


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_cut_values_say_how_to_see_them_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """Newcomers saw `{"id": 7, "lines...` and no way to see the rest."""
    found = trial({"offset": "bigint", "value": "string"}, rows=[{"offset": 1, "value": LONG}])
    out, err = shown(found, capsys)
    assert LONG[:40] + "..." in out
    assert "Values are cut after 40 characters; --whole (or -o json) shows them whole." in err


def test_values_are_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """Of rows and of dead letters; folded, with nothing left out."""
    letter = {"partition": 0, "offset": 2, "reason": "no id", "value": LONG.encode()}
    schema = {"offset": "bigint", "value": "string"}
    found = trial(schema, rows=[{"offset": 1, "value": LONG}], dead_letters=[letter])
    out, err = shown(found, capsys, is_whole=True)
    assert "".join(out.split()).count("".join(LONG.split())) == 2
    assert "row 1" in out
    assert "dead letter 1" in out
    assert "cut" not in err


def test_short_values_say_nothing_about_it(capsys: pytest.CaptureFixture[str]) -> None:
    """A table, and the sentence about the table to be made."""
    out, err = shown(trial({"id": "string"}, rows=[{"id": "a"}]), capsys)
    assert out.split() == ["id", "string", "a"]
    assert "cut" not in err
    assert "would be made, with id string" in err


def test_rows_that_are_too_wide_are_shown_in_turn(capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty columns do not fit side by side: their names would be cut."""
    schema = {f"quite_a_long_name_{number}": "string" for number in range(20)}
    out, _ = shown(trial(schema, rows=[dict.fromkeys(schema, "x")]), capsys)
    assert all(name in out for name in schema)
    assert "\u2026" not in out


def test_a_column_without_any_value_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Newcomers did not see that a field had another name: its column was null in every row."""
    schema = {"id": "string", "amount": "double", "key": "binary"}
    rows = [{"id": "a", "amount": None, "key": None}, {"id": None, "amount": None, "key": None}]
    _, err = shown(trial(schema, rows=rows), capsys)
    assert "Null in every row: amount. Are these names and types in your records?" in err
    _, err = shown(trial(schema, rows=[{"id": "a", "amount": 1.5, "key": None}]), capsys)
    assert "Null in every row" not in err
    _, err = shown(trial(schema), capsys)
    assert "Null in every row" not in err
