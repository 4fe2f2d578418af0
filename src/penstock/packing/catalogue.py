"""Every packing algorithm: ours first, then the twelve published ones.

A new algorithm is one file and one line here.
"""

from penstock.packing.best_fit import BEST_FIT, BEST_FIT_DECREASING
from penstock.packing.chain import KNOB_DEFAULT, ChainPacking
from penstock.packing.first_fit import FIRST_FIT, FIRST_FIT_DECREASING
from penstock.packing.modified_any_fit import (
    MODIFIED_BEST_FIT,
    MODIFIED_BEST_FIT_BY_PARTITION,
    MODIFIED_WORST_FIT,
    MODIFIED_WORST_FIT_BY_PARTITION,
)
from penstock.packing.next_fit import NEXT_FIT, NEXT_FIT_DECREASING
from penstock.packing.problem import PackingAlgorithm
from penstock.packing.worst_fit import WORST_FIT, WORST_FIT_DECREASING

DEFAULT = ChainPacking()

PUBLISHED: tuple[PackingAlgorithm, ...] = (
    NEXT_FIT,
    NEXT_FIT_DECREASING,
    FIRST_FIT,
    FIRST_FIT_DECREASING,
    WORST_FIT,
    WORST_FIT_DECREASING,
    BEST_FIT,
    BEST_FIT_DECREASING,
    MODIFIED_WORST_FIT,
    MODIFIED_WORST_FIT_BY_PARTITION,
    MODIFIED_BEST_FIT,
    MODIFIED_BEST_FIT_BY_PARTITION,
)

ALGORITHMS: tuple[PackingAlgorithm, ...] = (DEFAULT, *PUBLISHED)

_BY_NAME = {algorithm.name: algorithm for algorithm in ALGORITHMS}


def algorithm_named(text: str, knob: float | None = None) -> PackingAlgorithm:
    """Find `MWF`, `chain` or `CHAIN@0.3`; `knob` applies to names without one.

    Raises ValueError, with a message for people, if the name is unknown.
    """
    name, at, given = text.strip().upper().partition("@")
    if name not in _BY_NAME:
        raise ValueError(f"no packing algorithm {text!r}; there are {', '.join(_BY_NAME)}")
    if name == DEFAULT.name:
        if not at:
            return DEFAULT if knob is None else ChainPacking(knob)
        return ChainPacking(_knob(text, given))
    if at:
        raise ValueError(f"{name} has no knob; only {DEFAULT.name} has, as in {DEFAULT.name}@0.3")
    return _BY_NAME[name]


def _knob(text: str, given: str) -> float:
    try:
        return float(given)
    except ValueError:
        raise ValueError(f"a knob is a number from 0 to 1, as in CHAIN@0.3, got {text!r}") from None


__all__ = ["ALGORITHMS", "DEFAULT", "KNOB_DEFAULT", "PUBLISHED", "algorithm_named"]
