"""A predictor of loads that come again: it waits for the same phase of the last period.

It is tried by the study of the objective against the trend that the product follows. The period is
the lag at which the sum of all speeds agrees best with itself; what is expected of a partition is
the highest speed that it had one period ago, from this moment on and for a while.
"""

import numpy as np

from penstock.laboratory.studies.objective.loads import Speeds

EVERY_S = 5
# How far ahead: a consumer must start and a partition move before.
AHEAD_S = 30
_LOOK_EVERY_S = 60
_LAG_MIN = 6
# Below this a load does not come again.
_AGREEMENT_MIN = 0.6


class PeriodicPredictor:
    def __init__(self) -> None:
        self._rows: list[Speeds] = []
        self._period: int | None = None

    def observe(self, now_s: int, speeds: Speeds) -> None:
        if now_s % EVERY_S == 0:
            self._rows.append(speeds.copy())
            if now_s % _LOOK_EVERY_S == 0:
                self._period = period_of(np.array([row.sum() for row in self._rows]))

    def expected(self, now_s: int) -> Speeds | None:
        """The highest speed of each partition that is due; None while no period is known."""
        if self._period is None:
            return None
        begin = now_s // EVERY_S + 1 - self._period
        found: Speeds = np.max(self._rows[begin : begin + AHEAD_S // EVERY_S + 1], axis=0)
        return found


def period_of(totals: Speeds) -> int | None:
    """The lag with the best agreement that was seen at least twice, in measurements."""
    number = len(totals)
    if number < 2 * _LAG_MIN + 2:
        return None
    centred = totals - totals.mean()
    power = np.abs(np.fft.rfft(centred, 2 * number)) ** 2
    agreement = np.fft.irfft(power)[:number]
    if agreement[0] <= 0:
        return None
    # Each lag by the number of pairs that it has.
    agreement = agreement / agreement[0] * number / (number - np.arange(number))
    lags = np.arange(_LAG_MIN, number // 2)
    inner = agreement[lags]
    is_peak = (inner >= agreement[lags - 1]) & (inner >= agreement[lags + 1])
    good = lags[is_peak & (inner > _AGREEMENT_MIN)]
    return int(good[np.argmax(agreement[good])]) if good.size else None
