"""What no table takes, and what is no record, is said at once; no Spark is needed for that."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import SettingsError
from penstock.pipeline.failures import TransformationFailedError, TransformationMissingError
from penstock.pipeline.transformation import load_transformation, transform
from penstock.settings.sections import TableSettings
from penstock.testing import Record, run_transformation


def rows_with(*columns: str) -> Any:
    """As much of a DataFrame as is looked at before Spark runs."""
    return SimpleNamespace(columns=list(columns), write=None, sparkSession=None)


def passed_on(raw: Any) -> Any:
    return raw


TABLE = TableSettings(table="t", transformation=f"{__name__}:passed_on")


@pytest.fixture(autouse=True)
def _found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.pipeline.transformation.load_transformation", lambda _: passed_on)


@pytest.mark.parametrize("columns", [("id", "id"), ("id", "offset", "ID")])
def test_a_column_that_comes_twice_fails_the_transformation(columns: tuple[str, ...]) -> None:
    """It would otherwise be tried again for ever, as an error that nobody foresaw."""
    with pytest.raises(TransformationFailedError, match="more than once"):
        transform(rows_with(*columns), TABLE)
    assert transform(rows_with("id", "offset"), TABLE).dead_letters is None


@pytest.mark.parametrize("option", ["columns", "partition_by"])
def test_settings_name_a_column_once(option: str) -> None:
    """In whatever case it is written."""
    with pytest.raises(ValueError, match="'Id' is named more than once"):
        TableSettings.model_validate({option: ["id", "Id"]})


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ("abc", "a list of records"),
        ([5], "bytes, text or None, got int: 5"),
        ([Record("a", key=1.5)], "bytes, text or None, got float"),  # type: ignore[arg-type] # wrong
    ],
)
def test_what_is_no_record_is_not_blamed_on_the_function(records: Any, why: str) -> None:
    """Before Spark is started."""
    with pytest.raises(TypeError, match=why):
        run_transformation(passed_on, records)


def test_an_offset_is_not_negative() -> None:
    """The message says so, and compares it with no other."""
    with pytest.raises(ValueError, match="an offset is 0 or more, got -1"):
        run_transformation(passed_on, [Record("a", offset=-1)])


def test_a_name_that_is_no_function_is_a_settings_error() -> None:
    """With the words of the settings file, not pydantic's."""
    nothing = object()
    with pytest.raises(SettingsError, match=r"'shop\.orders' is not a function as package"):
        run_transformation("shop.orders", [], session=nothing)
    with pytest.raises(SettingsError, match="columns: the column 'ID' is named more than once"):
        run_transformation(passed_on, [], columns=["id", "ID"], session=nothing)


def test_a_module_with_nearly_this_name_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PYTHONPATH is right, and the name is not."""
    (tmp_path / "my_transformations.py").write_text("def decode(rows): return rows\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(TransformationMissingError) as missing:
        load_transformation("my_transformation:decode")
    assert missing.value.remedy.startswith("Did you mean my_transformations, which is there? ")


def test_a_module_that_is_broken_is_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was found: where Python looks is not the question."""
    (tmp_path / "broken_module.py").write_text("def decode(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(TransformationMissingError, match="SyntaxError") as missing:
        load_transformation("broken_module:decode")
    assert "PYTHONPATH" not in missing.value.remedy
    assert "importing broken_module" in missing.value.remedy
