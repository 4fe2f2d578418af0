"""Commands in prose, tables, errors and help texts exist, with the options they show."""

from pathlib import Path

import pytest

from documents import ROOT
from documents.commands import commands_in, problems_of, unknown_commands

# Records of decisions may name what was.
DOCUMENTS = [
    path
    for path in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]
    if "decisions" not in path.parts
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_in_a_document_exists(document: Path) -> None:
    """A command, an option or a target that was renamed is renamed in the documents too."""
    assert [str(one) for one in unknown_commands(ROOT, document)] == []


def test_every_command_in_an_error_or_a_help_text_exists() -> None:
    """Remedies, examples of the commands and docstrings name what can be run."""
    sources = sorted((ROOT / "src").rglob("*.py"))
    assert sum(len(commands_in(ROOT, source)) for source in sources) > 80
    found = [str(one) for source in sources for one in unknown_commands(ROOT, source)]
    assert found == []


def test_there_are_commands_to_check() -> None:
    """A rule over an empty list proves nothing."""
    found = {command for document in DOCUMENTS for _, command in commands_in(ROOT, document)}
    assert len(found) > 50
    assert {
        "make quick PACKAGE=controller",
        "penstock up",
        "python benchmarks/consumer.py",
    } <= found


def test_commands_are_found_in_prose_and_in_blocks_that_are_not_run(tmp_path: Path) -> None:
    """One that is broken over two lines too, and one that a pod runs; no path and no bare name."""
    page = tmp_path / "page.md"
    page.write_text(
        "`penstock` `src/penstock` `make` | `make test` | `penstock study\nmonitor`\n"
        "`kubectl exec x -- penstock verify`\n"
        "<!-- run -->\n```sh\npenstock nosuch\n```\n"
        "<!-- not run: slow -->\n```sh\nkubectl get pods\n"
        "penstock status && make demo  # both\n```\n",
        encoding="utf-8",
    )
    assert commands_in(tmp_path, page) == [
        (1, "make test"),
        (1, "penstock study monitor"),
        (3, "penstock verify"),
        (9, "make demo"),
        (9, "penstock status"),
    ]


@pytest.mark.parametrize(
    "command",
    [
        "make quick PACKAGE=controller",
        "penstock consumer --id N",
        "penstock consumer --id=3 --help",
        "penstock load orders=50kB/s --create 4 --duration 2m",
        "penstock service send change-settings '{...}'",
        "penstock --version",
        "penstock {name} stop --name {other}",
        "python benchmarks/packing.py",
        "python -m penstock.laboratory.protocol_simulation --seeds N",
    ],
)
def test_a_right_command_has_no_problems(command: str) -> None:
    """Also with placeholders."""
    assert problems_of(ROOT, command) == []


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("make nosuch", "no target nosuch"),
        ("make quick PACKET=x", "no variable PACKET"),
        ("penstock nosuch", "no command nosuch"),
        ("penstock topics nosuch", "no command nosuch"),
        ("penstock up --nosuch", "no option --nosuch"),
        ("penstock up now", "no argument now"),
        ("penstock consumer --id", "--id needs a value"),
        ("penstock consumer --id one", "'one' is not a valid"),
        ("penstock pause --direction sideways", "'sideways' is not one of"),
        ("python benchmarks/nosuch.py", "no file benchmarks/nosuch.py"),
        ("python -m penstock.nosuch", "no module penstock.nosuch"),
        ("python -m penstock.laboratory.protocol_simulation --sed 3", "no option --sed"),
    ],
)
def test_a_wrong_command_is_found(command: str, problem: str) -> None:
    """Whatever part of it is wrong."""
    (found,) = problems_of(ROOT, command)
    assert problem in found
