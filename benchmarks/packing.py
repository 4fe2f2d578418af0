"""How long one packing takes, and how that grows with the number of partitions.

    python benchmarks/packing.py

Prints a table for benchmarks/packing.md: the median CPU time of a run on a group that has drifted
since the packing before (speeds are fractions, not whole percents, which is the harder case), by
number of partitions and knob, and the exponent fitted to it. Targets: at most 20 ms at 200
partitions and 2 s at 10,000.
"""

import sys
from collections.abc import Iterator
from math import log
from statistics import median
from time import process_time

import numpy as np

from penstock.model import Assignment, TopicPartition
from penstock.packing import PackingProblem
from penstock.packing.chain import KNOB_DEFAULT, ChainPacking

CAPACITY = 2_000_000
SIZES = (200, 500, 1_000, 2_000, 5_000, 10_000)
RUNS = {200: 25, 500: 15, 1_000: 9, 2_000: 7, 5_000: 5, 10_000: 5}
SEED = 77


def time_of_runs(partitions: int, knob: float, share_max: float) -> float:
    """The median CPU seconds of a run, each from the packing and a drift of a tenth before it."""
    chance = np.random.default_rng(SEED)
    names = [TopicPartition("orders", number) for number in range(partitions)]
    top = CAPACITY * share_max
    speeds = chance.random(partitions) * top
    algorithm, assignment, times = ChainPacking(knob), Assignment(), []
    for _ in range(RUNS[partitions] + 1):
        named = dict(zip(names, map(float, speeds), strict=True))
        began = process_time()
        assignment = algorithm.pack(PackingProblem(named, assignment, CAPACITY)).assignment
        times.append(process_time() - began)
        speeds = np.clip(speeds + chance.normal(0, top / 10, partitions), 0, top)
    return median(times[1:])


def exponent(times: dict[int, float]) -> float:
    """The slope of time over partitions, both as logarithms."""
    slope = np.polyfit([log(n) for n in times], [log(t) for t in times.values()], 1)[0]
    return float(slope)


def rows() -> Iterator[str]:
    counts = " | ".join(f"{count} partitions" for count in SIZES)
    yield f"| speeds up to | knob | {counts} | exponent |"
    yield "|---|---|" + "---|" * (len(SIZES) + 1)
    for share_max in (1.0, 0.1):
        for knob in (KNOB_DEFAULT, 0.0):
            times = {count: time_of_runs(count, knob, share_max) for count in SIZES}
            cells = " | ".join(f"{1000 * time:.1f} ms" for time in times.values())
            share = f"{100 * share_max:g} % of a consumer"
            yield f"| {share} | {knob:g} | {cells} | {exponent(times):.2f} |"


if __name__ == "__main__":
    for row in rows():
        sys.stdout.write(f"{row}\n")
