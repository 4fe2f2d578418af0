"""At 80 columns names stay on one line, because people copy them; explanations are folded."""

import pytest
from rich.table import Table

from kit.program import invoked
from penstock.cli.console import OutputFormat, print_data
from penstock.settings.tree import known_options


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def printed(table: Table, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_data([], OutputFormat.TABLE, table)
    return capsys.readouterr().out.splitlines()


def test_every_option_is_on_one_line() -> None:
    """`controller.allowed_transforma` and `tions` on the next line cannot be copied."""
    lines = invoked("settings").stdout.splitlines()
    begins = {line.split()[0] for line in lines if line.strip()}
    assert {".".join(path) for path in known_options()} <= begins
    assert all(len(line) <= 80 for line in lines)


def test_the_explanation_is_folded_and_not_the_name(capsys: pytest.CaptureFixture[str]) -> None:
    """However long the explanation is, nothing of it is left out."""
    why = " ".join(f"word{number}" for number in range(40))
    table = Table("when", "what", "plan", "moves", "cost", "why", box=None)
    table.add_row("119 s ago", "deployment_could_not_be_listed", "12", "3", "1.5 MB/s", why)
    lines = printed(table, capsys)
    assert any("119 s ago  deployment_could_not_be_listed" in line for line in lines)
    assert all(word in " ".join(lines).split() for word in why.split())
    assert all(len(line) <= 80 for line in lines)


def test_a_name_that_is_longer_than_the_terminal_is_folded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A topic may have 249 characters: a name that is cut is no name."""
    topic = "X" * 249
    table = Table("topic", "state", box=None)
    table.add_row(topic, "fine")
    lines = printed(table, capsys)
    assert "".join(lines).count("X") == 249
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize("pattern", ["registry/[a-z]+:[0-9]+", "team[/-].*"])
def test_a_pattern_is_shown_as_it_is(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets are no markup: who looks up what is allowed must see all of it."""
    monkeypatch.setenv("COLUMNS", "200")
    done = invoked("settings", "--set", f'controller.allowed_images=["{pattern}"]')
    assert done.exit_code == 0
    assert pattern in done.stdout
