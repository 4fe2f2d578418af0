"""Compares our versions of the twelve published algorithms with the published table.

The published scores come from one stream per delta, and a stream that is harder for one algorithm
is harder for all. So there are two comparisons. The plain one compares our mean over many streams
with the published score. The other one corrects for the stream: a line is fitted over our streams,
of this algorithm's score against the others' mean share of their published scores, and read where
that share is one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import linear_regression, mean, stdev

from penstock.laboratory.studies.packing.published import PUBLISHED_SCORES
from penstock.laboratory.studies.packing.study import PackingRunResult
from penstock.packing import PUBLISHED
from penstock.packing.scores import cardinal_bin_scores

NAMES = tuple(algorithm.name for algorithm in PUBLISHED)
STREAMS_MIN = 5
CBS_SHOWN_MIN = 0.01
"""Smaller published scores are left out: shares of them would be noise."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One score of one algorithm at one delta, compared with the published one."""

    published: float
    mean: float
    spread: float
    like_with_like: float | None


@dataclass(frozen=True, slots=True)
class Closeness:
    cbs: Compared
    r: Compared


def closeness(
    outcomes: Sequence[PackingRunResult], deltas: Sequence[int]
) -> dict[tuple[str, int], Closeness]:
    """By algorithm and delta. CBS is computed among the twelve only, as in the publication."""
    found = {}
    for delta in deltas:
        streams: dict[int, dict[str, PackingRunResult]] = {}
        for one in outcomes:
            if one.run.delta == delta and one.run.start == "uniform" and one.run.name in NAMES:
                streams.setdefault(one.run.seed, {})[one.run.name] = one
        cbs: dict[str, list[float]] = {name: [] for name in NAMES}
        r: dict[str, list[float]] = {name: [] for name in NAMES}
        for _, ran in sorted(streams.items()):
            here = cardinal_bin_scores({name: one.consumers for name, one in ran.items()})
            for name in NAMES:
                cbs[name].append(here[name])
                r[name].append(ran[name].moved_score_mean)
        cbs_published = {name: PUBLISHED_SCORES[name, delta].cbs for name in NAMES}
        r_published = {name: PUBLISHED_SCORES[name, delta].r for name in NAMES}
        for name in NAMES:
            found[name, delta] = Closeness(
                _compared(name, cbs, cbs_published), _compared(name, r, r_published)
            )
    return found


def _compared(
    name: str, scores: Mapping[str, Sequence[float]], published: Mapping[str, float]
) -> Compared:
    own = scores[name]
    spread = stdev(own) if len(own) > 1 else 0.0
    others = [m for m in NAMES if m != name and published[m] >= CBS_SHOWN_MIN]
    shares = [
        fsum(scores[other][stream] / published[other] for other in others) / len(others)
        for stream in range(len(own))
    ]
    like = None
    if len(own) >= STREAMS_MIN and len(set(shares)) > 1:
        slope, intercept = linear_regression(shares, own)
        like = intercept + slope
    return Compared(published[name], mean(own), spread, like)
