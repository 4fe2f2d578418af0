"""Short versions of the published streams, and the scores of algorithms on them."""

from functools import cache
from time import process_time

from penstock.laboratory.packing_replay.generate import Kind, Recipe, generate
from penstock.laboratory.packing_replay.replay import OnEveryMeasurement, replay
from penstock.laboratory.packing_replay.summary import Summary, summarise
from penstock.packing import algorithm_named
from penstock.packing.scores import cardinal_bin_scores

CAPACITY = 100


@cache
def replayed(name: str, delta: int, seed: int, measurements: int = 101) -> Summary:
    """Run one algorithm on every measurement of a random walk of 200 partitions."""
    recipe = Recipe(Kind.WALK, delta=delta, measurements=measurements, seed=seed)
    stream = generate(recipe, CAPACITY)
    steps = replay(algorithm_named(name), stream, OnEveryMeasurement(CAPACITY), process_time)
    return summarise(name, steps)


def mean_scores(
    names: tuple[str, ...], delta: int, seeds: tuple[int, ...]
) -> dict[str, list[float]]:
    """Name -> [CBS, R], means over the seeds."""
    sums = {name: [0.0, 0.0] for name in names}
    for seed in seeds:
        ran = {name: replayed(name, delta, seed) for name in names}
        cbs = cardinal_bin_scores({name: summary.consumers for name, summary in ran.items()})
        for name, summary in ran.items():
            sums[name][0] += cbs[name] / len(seeds)
            sums[name][1] += summary.moved_score_mean / len(seeds)
    return sums
