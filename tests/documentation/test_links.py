"""Documents lead where they say, and sources name documents that exist."""

import subprocess
from pathlib import Path

import pytest

from documents.links import anchors, broken_in, documents_named_in
from kit.generated_files import ROOT


def tracked(*patterns: str) -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = [ROOT / name for name in answer.stdout.splitlines()]
    return [path for path in found if path.is_file()] or sorted(ROOT.glob("docs/**/*.md"))


DOCUMENTS = tracked("*.md")
SOURCES = [
    path
    for path in tracked(
        "src", "deploy", "tests", "tools", "benchmarks", "setup", "Makefile", "*.toml"
    )
    if path.suffix not in {".png", ".csv", ".sum", ".mod"}
]


def test_there_are_documents_to_check() -> None:
    """A check of an empty list proves nothing."""
    assert len(DOCUMENTS) > 50
    assert len(SOURCES) > 300


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_everything_a_document_names_exists(document: Path) -> None:
    """Links, anchors, paths, names of tests and of modules."""
    assert [str(one) for one in broken_in(ROOT, document)] == []


def test_sources_name_documents_that_exist() -> None:
    """An error text or a comment that names a document names one that is there."""
    found = [str(one) for file in SOURCES for one in documents_named_in(ROOT, file)]
    assert found == []


def test_what_leads_nowhere_is_found(tmp_path: Path) -> None:
    """A wrong link, anchor, path, test and module are each reported with their line."""
    (tmp_path / "other.md").write_text("# One heading\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "[right](other.md#one-heading)\n[gone](gone.md)\n[gone](other.md#two)\n"
        "`src/penstock/gone.py`\n`test_gone`\n`penstock.gone.module`\n"
        "```\n[in a block](gone.md)\n```\n",
        encoding="utf-8",
    )
    found = [(one.line, one.name) for one in broken_in(tmp_path, page)]
    assert found == [
        (2, "gone.md"),
        (3, "other.md#two"),
        (4, "src/penstock/gone.py"),
        (5, "test_gone"),
        (6, "penstock.gone.module"),
    ]
    named = tmp_path / "source.py"
    gone = "docs/" + "gone.md"  # in two parts, or this file would name it
    named.write_text(f'remedy = "See {gone}."\n', encoding="utf-8")
    assert [str(one) for one in documents_named_in(tmp_path, named)] == [f"source.py:1: {gone}"]


def test_headings_become_anchors_as_readers_make_them(tmp_path: Path) -> None:
    """Small letters, hyphens for spaces, no punctuation, a number when a heading comes again."""
    page = tmp_path / "page.md"
    page.write_text("# A `b`: c, d\n## Again\n## Again\n```\n# no\n```\n", encoding="utf-8")
    assert anchors(page) == {"a-b-c-d", "again", "again-1"}
