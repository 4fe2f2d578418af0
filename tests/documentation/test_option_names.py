"""Documents name options that exist."""

from pathlib import Path

import pytest

from documents import ROOT
from documents.option_names import VALUES, unknown_options

# Records of decisions and the changelog may name what was.
DOCUMENTS = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if "decisions" not in path.parts
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_option_in_a_document_exists(document: Path) -> None:
    """A renamed option is renamed in the documents too."""
    assert [str(one) for one in unknown_options(ROOT, document)] == []


def test_an_unknown_option_is_found(tmp_path: Path) -> None:
    """However it is written; values of the chart and names of secrets' files are known."""
    values = tmp_path / VALUES
    values.parent.mkdir(parents=True)
    values.write_text("consumer: {image: {}}\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "`packing.knob` `packing.nob` `--set lake.rot=x` `settings.lake.root` `consumer.image`\n"
        "`kafka.sasl_password_file` `controller.nosuch: 3` `lake.tables.orders` `a/chain.py`\n",
        encoding="utf-8",
    )
    found = [(one.line, one.name) for one in unknown_options(tmp_path, page)]
    assert found == [(1, "packing.nob"), (1, "lake.rot"), (2, "controller.nosuch")]
