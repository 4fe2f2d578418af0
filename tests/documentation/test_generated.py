"""Generated documents are in step with the code they are generated from."""

import pytest

from documents.generated import CHART_SCHEMA, GENERATED, Generated, section
from kit.generated_files import ROOT, assert_up_to_date


@pytest.mark.parametrize("generated", GENERATED, ids=lambda one: one.path)
def test_the_committed_file_is_what_the_program_writes(generated: Generated) -> None:
    """`make docs` was run after the last change of what the file is generated from."""
    assert_up_to_date(ROOT / generated.path, generated.text())


def test_a_changed_section_is_seen() -> None:
    """A section that would be written otherwise fails the comparison, and the rest stays."""
    other = section("docs/sizing.md", "algorithms", lambda: "another table")
    with pytest.raises(AssertionError, match="make docs"):
        assert_up_to_date(ROOT / other.path, other.text())
    assert other.text().startswith("# ")


def test_a_missing_section_is_an_error() -> None:
    """A document that lost its marks is not passed over."""
    with pytest.raises(ValueError, match="no section nowhere"):
        section("docs/sizing.md", "nowhere", str).text()


def test_every_kind_of_generated_file_is_listed() -> None:
    """Options, reference, schemas, chart, rights, states, algorithms and planted bugs."""
    assert {CHART_SCHEMA, "docs/options.md", "docs/security.md"} <= {one.path for one in GENERATED}
    assert len(GENERATED) > 20
