"""The manifests in deploy/manifests/ are what the chart renders, for users without Helm."""

from pathlib import Path

import pytest
import yaml

from documents.manifests import MANIFESTS, manifest_path, manifest_text
from kit.generated_files import ROOT, assert_up_to_date

pytestmark = pytest.mark.timeout(1300)  # the first run on a machine compiles Helm


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_plain_manifests_are_the_charts(helm: Path, name: str) -> None:
    """The committed manifests are what `make docs` writes."""
    assert_up_to_date(ROOT / manifest_path(name), manifest_text(helm, name))


def test_there_are_no_others() -> None:
    """Every manifest is generated."""
    found = {path.stem for path in (ROOT / "deploy" / "manifests").iterdir()}
    assert found == set(MANIFESTS)


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_manifests_are_whole_objects(name: str) -> None:
    """Removing Helm's labels removes nothing else."""
    text = (ROOT / manifest_path(name)).read_text(encoding="utf-8")
    objects = [one for one in yaml.safe_load_all(text) if one]
    assert len(objects) >= 10
    for one in objects:
        assert set(one) >= {"apiVersion", "kind", "metadata"}
        assert one["metadata"]["labels"]["app.kubernetes.io/name"] == "penstock"
        assert "helm" not in str(one).lower()
