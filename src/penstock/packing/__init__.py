"""Decides which consumer reads which partition. Pure, deterministic and independent of Kafka."""

from penstock.packing.catalogue import ALGORITHMS, DEFAULT, PUBLISHED, algorithm_named
from penstock.packing.problem import Packing, PackingAlgorithm, PackingProblem

__all__ = [
    "ALGORITHMS",
    "DEFAULT",
    "PUBLISHED",
    "Packing",
    "PackingAlgorithm",
    "PackingProblem",
    "algorithm_named",
]
