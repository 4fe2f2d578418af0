"""Which consumer reads which partition. Pure and deterministic; knows nothing of Kafka."""

from penstock.packing.problem import Packing, PackingAlgorithm, PackingProblem

__all__ = ["Packing", "PackingAlgorithm", "PackingProblem"]
