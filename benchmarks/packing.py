"""How long one packing takes, and how that grows with the number of partitions.

    python benchmarks/packing.py

Prints the tables of benchmarks/packing.md: the median CPU time of a run on a group that has drifted
since the packing before (speeds are fractions, not whole percents, which is the harder case), by
number of partitions and knob, and the exponent fitted to it. In the second table the maximum of
consumers is lower than the load needs; its last column is the highest load of a consumer at the
largest number of partitions, as a multiple of what it would be if all were loaded alike. Targets:
at most 20 ms at 200 partitions and 2 s at 10,000, also when the maximum binds; the exit
code is 1 where one is missed.
"""

import sys
from collections.abc import Iterator
from itertools import product
from math import log
from statistics import median
from time import process_time

import numpy as np

from penstock.model import Assignment, TopicPartition
from penstock.packing import PackingProblem
from penstock.packing.chain import KNOB_DEFAULT, ChainPacking
from penstock.packing.scores import loads_bytes_per_s

CAPACITY = 2_000_000
SIZES = (200, 500, 1_000, 2_000, 5_000, 10_000)
RUNS = {200: 25, 500: 15, 1_000: 9, 2_000: 7, 5_000: 5, 10_000: 5}
SEED = 77
# The targets: seconds at most, by number of partitions.
MOST_S = {200: 0.02, 10_000: 2.0}


def run_some(
    partitions: int, knob: float, share_max: float, maximum_share: float | None
) -> tuple[float, float]:
    """The median CPU seconds of a run, each from the packing and a drift of a tenth before it.

    `maximum_share` is the maximum of consumers, as a share of what the load fills. The second
    figure is the highest load over the mean load, in the worst run.
    """
    chance = np.random.default_rng(SEED)
    names = [TopicPartition("orders", number) for number in range(partitions)]
    top = CAPACITY * share_max
    speeds = chance.random(partitions) * top
    bound = None if maximum_share is None else max(1, int(speeds.sum() / CAPACITY * maximum_share))
    algorithm, assignment, times, unevenness = ChainPacking(knob), Assignment(), [], 1.0
    for _ in range(RUNS[partitions] + 1):
        named = dict(zip(names, map(float, speeds), strict=True))
        problem = PackingProblem(named, assignment, CAPACITY, consumers_max=bound)
        began = process_time()
        assignment = algorithm.pack(problem).assignment
        times.append(process_time() - began)
        loads = loads_bytes_per_s(assignment, named).values()
        unevenness = max(unevenness, max(loads) * (bound or len(loads)) / sum(loads))
        speeds = np.clip(speeds + chance.normal(0, top / 10, partitions), 0, top)
    return median(times[1:]), unevenness


def exponent(times: dict[int, float]) -> float:
    """The slope of time over partitions, both as logarithms."""
    slope = np.polyfit([log(n) for n in times], [log(t) for t in times.values()], 1)[0]
    return float(slope)


def rows(maximum_shares: tuple[float | None, ...], missed: list[str]) -> Iterator[str]:
    counts = " | ".join(f"{count} partitions" for count in SIZES)
    is_bound = maximum_shares != (None,)
    yield f"| speeds up to | knob | {'maximum | ' * is_bound}{counts} | exponent |" + (
        " highest load |" if is_bound else ""
    )
    yield "|---|---|" + "---|" * (len(SIZES) + 1 + 2 * is_bound)
    for share_max in (1.0, 0.1):
        for knob, maximum in product((KNOB_DEFAULT, 0.0), maximum_shares):
            runs = {count: run_some(count, knob, share_max, maximum) for count in SIZES}
            times = {count: time for count, (time, _) in runs.items()}
            missed += [
                f"{n}: {times[n]:.3f} s" for n, most_s in MOST_S.items() if times[n] > most_s
            ]
            cells = " | ".join(f"{1000 * time:.1f} ms" for time in times.values())
            row = f"| {100 * share_max:g} % of a consumer | {knob:g} | "
            row += "" if maximum is None else f"{100 * maximum:g} % of the need | "
            row += f"{cells} | {exponent(times):.2f} |"
            yield row + (f" {runs[SIZES[-1]][1]:.4f} |" if is_bound else "")


def main() -> int:
    missed: list[str] = []
    for table in ((None,), (0.95, 0.5)):
        for row in rows(table, missed):
            sys.stdout.write(f"{row}\n")
        sys.stdout.write("\n")
    for one in missed:
        sys.stdout.write(f"MISSED with {one}\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
