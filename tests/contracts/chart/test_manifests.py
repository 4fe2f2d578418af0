"""The manifests in deploy/manifests/ are what the chart renders, for users without Helm."""

import re
from pathlib import Path

import pytest
import yaml

from kit.generated_files import ROOT, assert_up_to_date
from kit.kubernetes.helm import template

pytestmark = pytest.mark.timeout(1300)  # the first run on a machine compiles Helm
MANIFESTS = ROOT / "deploy" / "manifests"
HEAD = """\
# Generated from deploy/helm/penstock ({how}), not to be edited:
# `PENSTOCK_REWRITE=1 pytest tests/contracts/chart` writes it again. For the namespace `penstock`;
# docs/kubernetes.md says what to change before it is applied:
#   kubectl create namespace penstock && kubectl apply -n penstock -f deploy/manifests/{name}.yaml
"""
FORMS = {
    "penstock": ("its default values", ()),
    "penstock-connect": ("spark.connect.enabled=true", ("spark.connect.enabled=true",)),
}
# Labels by which Helm marks its own objects.
HELMS_OWN = re.compile(r"^ *(helm\.sh/|app\.kubernetes\.io/managed-by: Helm)")


def plain(text: str, name: str, how: str) -> str:
    """The text without Helm's labels and the blank lines of templates."""
    lines = [line.rstrip() for line in text.splitlines()]
    kept = [line for line in lines if line and not HELMS_OWN.match(line)]
    kept = [re.sub(r"^# Source: penstock/templates/", "# templates/", line) for line in kept]
    kept = [one for one, after in zip(kept, [*kept[1:], ""], strict=True) if not _empty(one, after)]
    return HEAD.format(name=name, how=how) + "\n".join(kept) + "\n"


def _empty(line: str, after: str) -> bool:
    """Whether this is an `annotations:` line without entries."""
    indent = len(line) - len(line.lstrip())
    return line.strip() == "annotations:" and len(after) - len(after.lstrip()) <= indent


@pytest.mark.parametrize("name", FORMS)
def test_the_plain_manifests_are_the_charts(helm: Path, name: str) -> None:
    """The committed manifests are up to date; `PENSTOCK_REWRITE=1` writes them again."""
    how, settings = FORMS[name]
    done = template(helm, settings=settings)
    assert done.returncode == 0, done.stderr
    assert_up_to_date(MANIFESTS / f"{name}.yaml", plain(done.stdout, name, how))


def test_there_are_no_others() -> None:
    """Every manifest is generated."""
    assert {path.name for path in MANIFESTS.iterdir()} == {f"{name}.yaml" for name in FORMS}


@pytest.mark.parametrize("name", FORMS)
def test_the_manifests_are_whole_objects(name: str) -> None:
    """Every manifest consists of complete objects."""
    text = (MANIFESTS / f"{name}.yaml").read_text(encoding="utf-8")
    objects = [one for one in yaml.safe_load_all(text) if one]
    assert len(objects) >= 10
    for one in objects:
        assert set(one) >= {"apiVersion", "kind", "metadata"}
        assert one["metadata"]["labels"]["app.kubernetes.io/name"] == "penstock"
        assert "helm" not in str(one).lower()
