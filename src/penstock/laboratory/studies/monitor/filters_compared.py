"""Compares filters and their parameters on the same recorded intervals."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import mean

from penstock.laboratory.studies.monitor.scores import follow_score, plateau_score
from penstock.laboratory.studies.monitor.trace import Curve, Trace, filtered_curve
from penstock.monitor.core.filters import Exponential, PlainWindow, SpeedFilter, StepAdapting


@dataclass(frozen=True, slots=True)
class Candidate:
    name: str
    speed_filter: SpeedFilter
    window_s: float = 30.0

    def curve(self, trace: Trace) -> Curve:
        return filtered_curve(trace, self.speed_filter, window_s=self.window_s)


CANDIDATES = (
    Candidate("window 30 s (as published)", PlainWindow()),
    Candidate("window 10 s", PlainWindow(), 10.5),
    Candidate("window 5 s", PlainWindow(), 5.5),
    Candidate("window 3 s", PlainWindow(), 3.5),
    Candidate("exponential 1 s", Exponential(1.0)),
    Candidate("exponential 3 s", Exponential(3.0)),
    Candidate("exponential 5 s", Exponential(5.0)),
    *(
        Candidate(
            f"step adapting {shortest:.0f} s, {tolerance:.0%}, {noise:.0f} x noise",
            StepAdapting(shortest, tolerance=tolerance, noise=noise),
        )
        for shortest, tolerance, noise in (
            (1.0, 0.03, 4.0),
            (2.0, 0.03, 4.0),
            (3.0, 0.01, 4.0),
            (3.0, 0.03, 2.0),
            (3.0, 0.03, 4.0),
            (3.0, 0.03, 6.0),
            (3.0, 0.10, 4.0),
            (5.0, 0.03, 4.0),
        )
    ),
)


@dataclass(frozen=True, slots=True)
class CandidateScore:
    """The worst of all plateaus, and the mean error on changing lanes."""

    name: str
    settling_s: float | None
    plateau_error: float
    spread: float
    delay_s: float
    follow_error: float


def compare(traces: Iterable[Trace]) -> list[CandidateScore]:
    judged = [trace for trace in traces if trace.partition == 0]
    stepping = [trace for trace in judged if trace.step_at_s is not None]
    moving = [trace for trace in judged if trace.step_at_s is None]
    scores = []
    for candidate in CANDIDATES:
        plateaus = [plateau_score(trace, candidate.curve(trace)) for trace in stepping]
        follows = [follow_score(trace, candidate.curve(trace)) for trace in moving]
        settled = [score.settling_s for score in plateaus]
        scores.append(
            CandidateScore(
                name=candidate.name,
                settling_s=None
                if None in settled
                else max((one for one in settled if one is not None), default=None),
                plateau_error=max(
                    (score.plateau_error for score in plateaus), key=abs, default=float("nan")
                ),
                spread=max((score.spread for score in plateaus), default=float("nan")),
                delay_s=mean(score.delay_s for score in follows) if follows else float("nan"),
                follow_error=mean(score.error for score in follows) if follows else float("nan"),
            )
        )
    return scores
