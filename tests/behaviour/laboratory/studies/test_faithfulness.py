"""The comparison of our twelve algorithms with the published scores."""

import pytest

from penstock.laboratory.studies.packing.faithfulness import NAMES, closeness
from penstock.laboratory.studies.packing.published import PUBLISHED_SCORES
from penstock.laboratory.studies.packing.study import PackingRun, PackingRunResult

FEWEST = 1_000_000


def outcomes(hardness: list[float], *, unfaithful: str = "") -> list[PackingRunResult]:
    """Each algorithm scores its published score times the stream's hardness."""
    found = []
    for seed, hard in enumerate(hardness, start=1):
        for name in NAMES:
            published = PUBLISHED_SCORES[name, 10]
            wrong = 1.2 if name == unfaithful else 1.0
            consumers = round(FEWEST * (1 + published.cbs * hard * wrong))
            run = PackingRun(name, "uniform", 10, seed, 2, 200)
            found.append(
                PackingRunResult(run, (consumers,) * 2, published.r * hard * wrong, 0, 1.0)
            )
    return found


def test_like_with_like_corrects_for_easy_streams() -> None:
    """On easier streams the mean differs from the published score, the fitted line does not."""
    found = closeness(outcomes([0.80, 0.84, 0.87, 0.90, 0.93]), [10])["NF", 10]
    assert found.cbs.mean - found.cbs.published < -0.03
    assert found.cbs.like_with_like == pytest.approx(found.cbs.published, abs=1e-5)
    assert found.r.like_with_like == pytest.approx(found.r.published)
    assert found.r.spread > 0.5


def test_like_with_like_detects_an_unfaithful_algorithm() -> None:
    """An algorithm that moves a fifth more than published is detected."""
    streams = outcomes([0.9, 0.95, 1.0, 1.05, 1.1], unfaithful="MWF")
    found = closeness(streams, [10])
    mwf = found["MWF", 10].r
    assert mwf.like_with_like == pytest.approx(1.2 * mwf.published)
    assert found["BFD", 10].r.like_with_like == pytest.approx(25.5, rel=0.03)


def test_few_streams_prove_nothing() -> None:
    """With fewer than five streams, or equal ones, no line is fitted."""
    assert closeness(outcomes([1.0, 1.1]), [10])["NF", 10].r.like_with_like is None
    assert closeness(outcomes([1.0] * 6), [10])["NF", 10].r.like_with_like is None
