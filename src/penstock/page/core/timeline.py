"""What the group did over time, in bounded memory: fine for the last hour, coarser before.

A sample is added about once a second. Three tiers keep them: seconds for an hour, tens of seconds
for six hours, minutes for two days. An answer has as many points as were asked for.
"""

from array import array
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.page.core.view import Json

FIELDS = (
    "written_bytes_per_s",
    "carried_bytes_per_s",
    "behind_records",
    "behind_bytes",
    "behind_s",
    "consumers_running",
    "consumers_needed",
    "consumers_fewest",
    "moving",
    "freshness_s",
    "freshness_at_least_s",
)
TIERS = ((1_000, 3_600), (10_000, 2_160), (60_000, 2_880))
# How many topics and consumers a sample tells apart; the smaller ones are one sum.
PARTS_MAX = 40
# How many pairs of topic and consumer; with more, only the sums of each are kept.
PAIRS_MAX = 400
POINTS_DEFAULT = 300
POINTS_MAX = 2_000
OTHER = None
_UNKNOWN = float("nan")


@dataclass(frozen=True, slots=True)
class Keyed:
    """Figures by key. Samples in a row share the tuple of keys."""

    keys: tuple[Hashable, ...]
    figures: "array[float]"

    def items(self) -> Iterable[tuple[Hashable, float]]:
        return zip(self.keys, self.figures, strict=True)


@dataclass(frozen=True, slots=True)
class Sample:
    at_unix_ms: int
    # In the order of FIELDS; not a number where it is unknown.
    figures: "array[float]"
    # By topic, by consumer, and by both; both is empty when there are too many.
    by_topic: Keyed
    by_consumer: Keyed
    by_both: Keyed


@dataclass(slots=True)
class _Sum:
    """The mean of figures by key, over the samples of one step."""

    sums: dict[Hashable, float]

    def add(self, keyed: Keyed) -> None:
        for key, figure in keyed.items():
            self.sums[key] = self.sums.get(key, 0.0) + figure


class Step:
    """Samples of one step of time, added up."""

    def __init__(self, at_unix_ms: int, *, with_both: bool = True) -> None:
        """Topics by consumer are the most, and seldom asked for: they can be left out."""
        self.at_unix_ms = at_unix_ms
        self.count = 0
        self._with_both = with_both
        self._sums = [0.0] * len(FIELDS)
        self._counts = [0] * len(FIELDS)
        self._parts = (_Sum({}), _Sum({}), _Sum({}))

    def add(self, sample: Sample) -> None:
        self.count += 1
        for place, figure in enumerate(sample.figures):
            if figure == figure:  # noqa: PLR0124 -- false for what is not a number
                self._sums[place] += figure
                self._counts[place] += 1
        self._parts[0].add(sample.by_topic)
        self._parts[1].add(sample.by_consumer)
        if self._with_both:
            self._parts[2].add(sample.by_both)

    def mean(self) -> Sample:
        figures = (
            total / count if count else _UNKNOWN
            for total, count in zip(self._sums, self._counts, strict=True)
        )
        topic, consumer, both = (
            Keyed(
                tuple(part.sums),
                array("f", (figure / self.count for figure in part.sums.values())),
            )
            for part in self._parts
        )
        return Sample(self.at_unix_ms, array("d", figures), topic, consumer, both)


class _Tier:
    def __init__(self, step_ms: int, steps_max: int) -> None:
        self.step_ms = step_ms
        self.samples: deque[Sample] = deque(maxlen=steps_max)
        self.has_dropped = False
        self._open: Step | None = None

    def add(self, sample: Sample) -> None:
        begin_ms = sample.at_unix_ms // self.step_ms * self.step_ms
        if self._open is not None and self._open.at_unix_ms != begin_ms:
            self.has_dropped |= len(self.samples) == self.samples.maxlen
            self.samples.append(self._open.mean())
            self._open = None
        if self._open is None:
            self._open = Step(begin_ms)
        self._open.add(sample)

    def all(self) -> list[Sample]:
        """With the step that is not complete yet."""
        return [*self.samples, *([self._open.mean()] if self._open is not None else [])]


class Timeline:
    def __init__(self, tiers: Sequence[tuple[int, int]] = TIERS) -> None:
        self._tiers = [_Tier(step_ms, steps_max) for step_ms, steps_max in tiers]
        self.newest: Sample | None = None

    def add(self, sample: Sample) -> None:
        if self.newest is not None and sample.at_unix_ms <= self.newest.at_unix_ms:
            return  # the clock of a new controller may be behind that of the former one
        self.newest = sample
        for tier in self._tiers:
            tier.add(sample)

    @property
    def begin_unix_ms(self) -> int | None:
        """When the oldest of what is kept was."""
        tier = self._tier_for(0)
        return next((one.at_unix_ms for one in tier.all()), None)

    def answer(
        self, from_unix_ms: int, to_unix_ms: int, points: int, topic: str | None = None
    ) -> Json:
        """At most `points` points, each the mean of its step; unknown is null, never 0.

        With `topic`, the figures by consumer are those of this topic alone.
        """
        tier = self._tier_for(from_unix_ms)
        span_ms = max(tier.step_ms, to_unix_ms - from_unix_ms)
        step_ms = -(-span_ms // points)
        step_ms = -(-step_ms // tier.step_ms) * tier.step_ms
        begin_ms = from_unix_ms // step_ms * step_ms
        steps: dict[int, Step] = {}
        for sample in tier.all():
            if begin_ms <= sample.at_unix_ms <= to_unix_ms:
                at_ms = sample.at_unix_ms // step_ms * step_ms
                if at_ms not in steps:
                    steps[at_ms] = Step(at_ms, with_both=topic is not None)
                steps[at_ms].add(sample)
        times = list(range(begin_ms, to_unix_ms + 1, step_ms))
        means = {at_ms: step.mean() for at_ms, step in steps.items()}
        samples = [means.get(at_ms) for at_ms in times]
        return {
            "from_unix_ms": from_unix_ms,
            "to_unix_ms": to_unix_ms,
            "step_ms": step_ms,
            "at_unix_ms": times,
            **{
                name: [None if one is None else known(one.figures[place]) for one in samples]
                for place, name in enumerate(FIELDS)
            },
            "by_topic": _series(samples, "topic", lambda one: one.by_topic),
            "by_consumer": _series(
                samples,
                "consumer",
                lambda one: one.by_consumer if topic is None else _of_topic(one.by_both, topic),
            ),
        }

    def _tier_for(self, from_unix_ms: int) -> _Tier:
        """The finest that reaches back far enough, or else the one that reaches back most."""
        for tier in self._tiers:
            if not tier.has_dropped or tier.samples[0].at_unix_ms <= from_unix_ms:
                return tier
        return self._tiers[-1]


def known(figure: float) -> float | None:
    return None if figure != figure else round(figure, 3)  # noqa: PLR0124 -- not a number


def _of_topic(both: Keyed, topic: str) -> Keyed:
    pairs = [(key[1], figure) for key, figure in both.items() if key[0] == topic]  # type: ignore[index]
    return Keyed(tuple(key for key, _ in pairs), array("f", (figure for _, figure in pairs)))


def _series(
    samples: Sequence[Sample | None], noun: str, of: Callable[[Sample], Keyed]
) -> list[Json]:
    """A list of figures for each key; the key of the small ones' sum is null, and last."""
    rows: dict[Hashable, list[float | None]] = {}
    for place, sample in enumerate(samples):
        if sample is None:
            continue
        for key, figure in of(sample).items():
            rows.setdefault(key, [None] * len(samples))[place] = round(figure, 3)
    ordered = sorted(rows, key=lambda key: (key is OTHER, key if key is not OTHER else 0))
    return [{noun: key, "bytes_per_s": rows[key]} for key in ordered]


def largest(figures: Mapping[Hashable, float], former: Keyed | None = None) -> Keyed:
    """The largest by key, and the sum of the others. Reuses the former keys where they fit."""
    if len(figures) > PARTS_MAX:
        ordered = sorted(figures, key=lambda key: -figures[key])
        kept = {key: figures[key] for key in ordered[:PARTS_MAX]}
        figures = {**kept, OTHER: sum(figures[key] for key in ordered[PARTS_MAX:])}
    keys = tuple(figures)
    if former is not None and former.keys == keys:
        keys = former.keys
    return Keyed(keys, array("f", figures.values()))
