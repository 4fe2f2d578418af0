"""Whether the load of the group has a peak that comes again, and after how long. Pure.

A job that runs every few minutes makes a peak of about the same height each time. A group that
forgets it between two runs ends consumers and starts them again with every run. So the highest load
of each half minute of the last hour is remembered, and a peak that came again several times is kept
until the next one. Peaks of different heights are no such job: nobody knows what comes next.

Speeds are remembered by topic, because what a byte of each costs is known better with time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

_PIECE_MS = 30_000
_PIECES_MAX = 120
# A peak is as high as the highest of the hour, or nearly.
_NEARLY = 0.9
# Between two peaks the load falls below this share of it.
_APART = 0.75
# So often it must have come again: what came twice may be chance.
_RETURNS_MIN = 3
# A peak that stays away for longer is not waited for: consumers that wait cost more than starts.
RETURNS_MS_MAX = 600_000

SpeedByTopic = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Peaks:
    """The highest speed of each topic in each half minute, the oldest first. Starts empty."""

    # Of the last half minute.
    began_ms: int = 0
    highest_bytes_per_s: tuple[SpeedByTopic, ...] = ()

    def return_after_s(self, weights: Mapping[str, float] | None = None) -> float | None:
        """The longest time from one peak until the next; None where none comes again.

        `weights` say how much the bytes of a topic cost, where it is not 1.
        """
        costs = weights or {}
        loads = [
            sum(speed * costs.get(topic, 1.0) for topic, speed in piece.items())
            for piece in self.highest_bytes_per_s
        ]
        highest, marks = max(loads, default=0.0), list[bool]()
        for is_high, run in groupby(loads, lambda load: load >= _NEARLY * highest):
            part = list(run)
            # A load that only wavers makes no break between two peaks.
            marks += [is_high or min(part) >= _APART * highest] * len(part)
        runs = [(is_high, sum(1 for _ in run)) for is_high, run in groupby(marks)]
        if runs and not runs[0][0]:
            # What was before the first peak says nothing; the time since the last one does.
            del runs[0]
        breaks = [pieces for is_high, pieces in runs if not is_high]
        came_again = sum(is_high for is_high, _ in runs) - 1
        longest_ms = (max(breaks, default=0) + 1) * _PIECE_MS
        if came_again < _RETURNS_MIN or longest_ms > RETURNS_MS_MAX:
            return None
        return longest_ms / 1_000


def note(peaks: Peaks, bytes_per_s: SpeedByTopic, now_ms: int) -> Peaks:
    """The peaks after one more measurement. A time without any is as the last one was."""
    seen = peaks.highest_bytes_per_s
    if not seen:
        return Peaks(now_ms, (dict(bytes_per_s),))
    newer = min(_PIECES_MAX, max(0, now_ms - peaks.began_ms) // _PIECE_MS)
    if newer:
        between = (seen[-1],) * (newer - 1)
        began_ms = now_ms - (now_ms - peaks.began_ms) % _PIECE_MS
        return Peaks(began_ms, (*seen, *between, dict(bytes_per_s))[-_PIECES_MAX:])
    last = seen[-1]
    higher = {topic: now for topic, now in bytes_per_s.items() if now > last.get(topic, 0.0)}
    if not higher:
        return peaks
    return Peaks(peaks.began_ms, (*seen[:-1], {**last, **higher}))
