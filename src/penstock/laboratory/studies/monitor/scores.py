"""Scores of a speed curve: settling time, plateau error, spread and delay. Pure.

settling   the time after the step from which on every published speed is within 5 % of the
           producer's speed on the new plateau, to the end
plateau    mean published speed over mean produced speed, less one
spread     the largest less the smallest published speed, over their mean
delay      by how much the curve must be moved back in time to fit the producer's best
"""

from dataclasses import dataclass

import numpy as np

from penstock.laboratory.studies.monitor.trace import (
    Curve,
    Trace,
    interpolated,
    only,
    produced_curve,
)

SETTLED_WITHIN = 0.05
CALM_WITHIN = 0.02
CALM_OVER_S = 5.0
# A plateau is judged from this long after its step: a third of the published settling time.
PLATEAU_AFTER_S = 10.0
_WARM_UP_S = 5.0
_END_MARGIN_S = 1.0
_DELAY_MAX_S = 30.0
_DELAY_STEP_S = 0.1


@dataclass(frozen=True, slots=True)
class PlateauScore:
    settling_s: float | None
    plateau_error: float
    spread: float
    produced_spread: float
    readings: int

    @property
    def is_disturbed(self) -> bool:
        return self.produced_spread > CALM_WITHIN


@dataclass(frozen=True, slots=True)
class FollowScore:
    delay_s: float
    error: float
    """Root mean square of the difference from the producer at the same moment, over its mean."""


def plateau_score(trace: Trace, curve: Curve) -> PlateauScore:
    """The score of a lane with a step. A step at 0 is a constant speed, settled at once."""
    if trace.step_at_s is None:
        raise ValueError(f"{trace.lane} has no plateau")
    end_s = trace.seconds - _END_MARGIN_S
    from_s = trace.step_at_s + min(PLATEAU_AFTER_S, (end_s - trace.step_at_s) / 2)
    truth = trace.produced_bytes_per_s(from_s, end_s)
    plateau = np.array(only(curve, from_s, end_s).bytes_per_s)
    calm = only(produced_curve(trace, over_s=CALM_OVER_S), from_s + CALM_OVER_S, end_s)
    produced = np.array(calm.bytes_per_s)
    after = only(curve, trace.step_at_s, end_s)
    return PlateauScore(
        settling_s=_settling_s(after, trace.step_at_s, truth) if trace.step_at_s else 0.0,
        plateau_error=float(plateau.mean() / truth - 1),
        spread=float(np.ptp(plateau) / plateau.mean()),
        produced_spread=float(np.ptp(produced) / produced.mean()),
        readings=len(plateau),
    )


def _settling_s(after: Curve, step_at_s: float, truth: float) -> float | None:
    """None when the last reading is still outside the tolerance."""
    settled_at_s: float | None = None
    for at_s, speed in zip(after.at_s, after.bytes_per_s, strict=True):
        if abs(speed - truth) > SETTLED_WITHIN * truth:
            settled_at_s = None
        elif settled_at_s is None:
            settled_at_s = at_s
    return None if settled_at_s is None else settled_at_s - step_at_s


def follow_score(trace: Trace, curve: Curve) -> FollowScore:
    """The score of a lane whose speed keeps changing."""
    judged = only(curve, _WARM_UP_S, trace.seconds - _END_MARGIN_S)
    produced = produced_curve(trace)
    measured = np.array(judged.bytes_per_s)
    mean = float(np.mean(interpolated(produced, judged.at_s)))

    def error(delay_s: float) -> float:
        moved = [at_s - delay_s for at_s in judged.at_s]
        # The produced curve averages the last second, so its middle is half a second earlier.
        there = np.array(interpolated(produced, [at_s + 0.5 for at_s in moved]))
        return float(np.sqrt(np.mean((measured - there) ** 2)) / mean)

    delays = np.arange(0.0, min(_DELAY_MAX_S, trace.seconds / 3), _DELAY_STEP_S).tolist()
    return FollowScore(delay_s=min(delays, key=error), error=error(0.0))
