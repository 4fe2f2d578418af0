"""The lake is tried before a group starts: in a corner of its own, of which nothing is left."""

import time
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import SettingsError
from penstock.pipeline.failures import LakeRefusedError, TransformationMissingError
from penstock.pipeline.lake_commit import LakeTable
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.trial import CORNER, corner, try_lake, try_out
from penstock.settings import Settings
from penstock.settings.sections import LakeSettings, TableSettings


def _no_session() -> Any:
    raise AssertionError("Spark is not needed for this")


def test_a_lake_that_takes_everything_stays_as_it_was(tmp_path: Path) -> None:
    """A folder that is not there is made and removed again; one with tables keeps only those."""
    lake = LakeSettings(root=str(tmp_path / "lake"))
    try_lake(lake)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "lake" / "orders").mkdir(parents=True)
    try_lake(lake)
    assert [one.name for one in (tmp_path / "lake").iterdir()] == ["orders"]


def test_trials_side_by_side_leave_one_another_alone(tmp_path: Path) -> None:
    """Each has a folder of its own; the corner goes with the last of them."""
    lake = LakeSettings(root=str(tmp_path / "lake"))
    with corner(lake) as one:
        Path(one.root).mkdir(parents=True)
        try_lake(lake)
        assert Path(one.root).is_dir()
    assert not (tmp_path / "lake").exists()


def test_what_a_killed_trial_left_is_removed_by_a_later_one(tmp_path: Path) -> None:
    """Only what is older than any trial takes; another may be at work."""
    lake = LakeSettings(root=str(tmp_path / "lake"))
    left = tmp_path / "lake" / CORNER / "1700000000-aa"
    running = tmp_path / "lake" / CORNER / f"{int(time.time())}-bb"
    for folder in (left, running):
        (folder / "rows").mkdir(parents=True)
    try_lake(lake)
    assert not left.exists()
    assert running.is_dir()


def test_a_lake_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    """A file where the folder should be, or above it: no waiting will help."""
    (tmp_path / "file").write_text("no folder")
    for root in (tmp_path / "file", tmp_path / "file" / "below" / "lake"):
        with pytest.raises(SettingsError, match="file is a file, not a folder") as refused:
            try_lake(LakeSettings(root=str(root)))
        assert "lake.root" in refused.value.remedy


def test_a_lake_that_refuses_files_says_what_to_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own words, the lake, and the setting."""

    def full(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(TableStorage, "create_file", full)
    with pytest.raises(LakeRefusedError, match="cannot be written: no space left") as refused:
        try_lake(LakeSettings(root=str(tmp_path / "lake")))
    assert "lake.root" in refused.value.remedy


def test_a_lake_that_forgets_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was committed must be there for another reader."""
    monkeypatch.setattr(LakeTable, "next_offsets", lambda _, names: dict.fromkeys(names))
    with pytest.raises(LakeRefusedError, match="does not give back"):
        try_lake(LakeSettings(root=str(tmp_path / "lake")))


def test_files_that_cannot_be_deleted_are_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that takes files and never lets them go fills up."""

    def refuse(*_: Any) -> None:
        raise OSError("may not delete")

    monkeypatch.setattr(TableStorage, "delete_folder", refuse)
    with pytest.raises(LakeRefusedError, match="may not delete"):
        try_lake(LakeSettings(root=str(tmp_path / "lake")))


def test_the_corner_is_no_table(tmp_path: Path) -> None:
    """Its name begins with an underscore, so that readers of the lake leave it out."""
    lake = LakeSettings(root=str(tmp_path))
    with corner(lake) as place:
        assert Path(place.root).parent == tmp_path / CORNER
    assert CORNER.startswith("_")


def test_without_a_transformation_only_the_lake_is_tried(tmp_path: Path) -> None:
    """Spark is not started for it."""
    settings = Settings(lake=LakeSettings(root=str(tmp_path / "lake")))
    (found,) = try_out(settings, _no_session)
    assert (found.name, found.error) == ("lake", None)


def test_a_missing_module_is_found_without_spark(tmp_path: Path) -> None:
    """The finding has the name that is missing, and where Python looks."""
    tables = {"orders": TableSettings(transformation="no_such_module:decode")}
    settings = Settings(lake=LakeSettings(root=str(tmp_path / "lake"), tables=tables))
    _, found = try_out(settings, _no_session)
    assert found.name == "transformation of orders"
    assert isinstance(found.error, TransformationMissingError)
    assert "no_such_module:decode cannot be imported" in found.explanation
    assert "PYTHONPATH" in found.error.remedy


def test_what_depends_on_a_lake_that_refuses_is_not_tried(tmp_path: Path) -> None:
    """One cause is told once; a module that is missing is found all the same."""
    (tmp_path / "file").write_text("no folder")
    tables = {
        "orders": TableSettings(transformation="json:dumps"),
        "payments": TableSettings(transformation="no_such_module:decode"),
    }
    settings = Settings(lake=LakeSettings(root=str(tmp_path / "file"), tables=tables))
    lake, payments, orders = try_out(settings, _no_session)
    assert isinstance(lake.error, SettingsError)
    assert isinstance(payments.error, TransformationMissingError)
    assert orders.error is None
    assert orders.explanation == "json:dumps is there; not tried without the lake"


def test_without_a_session_transformations_are_only_imported(tmp_path: Path) -> None:
    """As before a Spark server is started: only what is wrong is found."""
    for function, names in (("json:dumps", ["lake"]), ("json:nothing", ["lake", "transformation"])):
        tables = {"orders": TableSettings(transformation=function)}
        settings = Settings(lake=LakeSettings(root=str(tmp_path / "lake"), tables=tables))
        assert [one.name.split()[0] for one in try_out(settings, None)] == names
