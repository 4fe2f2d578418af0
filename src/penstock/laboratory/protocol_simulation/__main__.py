"""Simulates the whole protocol under random faults, for `--seeds 2000` seeds or only `--seed 7`.

A failing seed prints the command that replays it; the replay prints the smallest failing scenario.
"""

import argparse
import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from penstock.laboratory.protocol_simulation.run_scenario import SeedResult, run
from penstock.laboratory.protocol_simulation.scenario import scenario
from penstock.laboratory.protocol_simulation.shrink import shrink

PROGRAM = "penstock.laboratory.protocol_simulation"
VOID_SHARE_MAX = 0.02


def run_seed(seed: int) -> SeedResult:
    return run(scenario(seed))


def replay_command(seed: int) -> str:
    return f"python -m {PROGRAM} --seed {seed}"


def replay(seed: int) -> int:
    """Run one seed and print its details; shrink it if it fails."""
    whole = scenario(seed)
    outcome = run(whole)
    sys.stdout.write(f"seed {seed}: {outcome.verdict}: {outcome.explanation}\n")
    if outcome.verdict != "red":
        faults = ", ".join(f"{name} {number}" for name, number in sorted(outcome.faults.items()))
        sys.stdout.write(
            f"  faults: {faults}\n  converged {outcome.converged_ms} ms after they stopped, "
            f"{outcome.starts} starts, {outcome.records} records, {outcome.events} events, "
            f"trace {outcome.trace}\n"
        )
        return 0
    small = shrink(whole, lambda candidate: run(candidate).verdict == "red")
    sys.stdout.write(f"  smallest failing scenario: {small.delivery_faults}\n")
    for fault in small.faults:
        sys.stdout.write(f"    {fault}\n")
    sys.stdout.write(f"  {run(small).explanation}\n")
    return 1


def run_all(first: int, seeds: int, jobs: int) -> int:
    """Run many seeds on several cores. Void runs do not count as green."""
    verdicts: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    slowest = records = 0
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        for outcome in pool.map(run_seed, range(first, first + seeds), chunksize=10):
            verdicts[outcome.verdict] += 1
            faults.update(outcome.faults)
            slowest = max(slowest, outcome.converged_ms)
            records += outcome.records
            if outcome.verdict == "red":
                sys.stdout.write(
                    f"seed {outcome.seed}: {outcome.explanation}\n"
                    f"  {replay_command(outcome.seed)}\n"
                )
            if sum(verdicts.values()) % 100 == 0:
                sys.stderr.write(f"{sum(verdicts.values())} of {seeds} seeds\n")
    sys.stdout.write(
        f"{verdicts['green']} green, {verdicts['void']} void, {verdicts['red']} red; "
        f"{sum(faults.values())} faults of {len(faults)} kinds, {records} records, "
        f"slowest to converge {slowest} ms\n"
    )
    return int(verdicts["red"] > 0 or verdicts["void"] > VOID_SHARE_MAX * seeds)


def main() -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {PROGRAM}", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, help="replay this one, and shrink it if it fails")
    asked = parser.parse_args()
    if asked.seed is not None:
        return replay(asked.seed)
    return run_all(asked.first, asked.seeds, asked.jobs)


if __name__ == "__main__":
    sys.exit(main())
