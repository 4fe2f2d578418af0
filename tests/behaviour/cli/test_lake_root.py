"""Commands that look at the lake say so when there is none."""

from pathlib import Path

import pytest

from kit.program import invoked
from penstock.errors import PenstockError

COMMANDS = [["lake", "compact"], ["lake", "tables"], ["lake", "ledger"], ["verify"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("written_as", ["{}", "file://{}"])
def test_a_lake_that_is_not_there_is_an_error(
    tmp_path: Path, command: list[str], written_as: str
) -> None:
    """Before Kafka is asked: compact and ledger ended with 0, as if all were well."""
    root = written_as.format(tmp_path / "nowhere")
    error = invoked(*command, "--set", f"lake.root={root}").exception
    assert isinstance(error, PenstockError)
    assert error.message == f"The lake {tmp_path / 'nowhere'} does not exist."
    assert error.remedy.startswith("Set lake.root")
    assert error.exit_code == 1


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_lake_that_is_a_file_is_an_error(tmp_path: Path, command: list[str]) -> None:
    """It has no table, whatever Kafka has."""
    file = tmp_path / "lake.txt"
    file.touch()
    error = invoked(*command, "--set", f"lake.root={file}").exception
    assert isinstance(error, PenstockError)
    assert error.message == f"The lake {file} is a file, not a folder."
