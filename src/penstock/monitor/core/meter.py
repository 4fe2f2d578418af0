"""Samples in, speeds out: what the monitor remembers of all partitions.

Each round, the meter gets what the brokers answered since the last one, with times from a monotonic
clock. It puts the answers in columns (one per partition), computes what was written since each
partition's last sample, keeps that in the window, and computes speeds with the filter. Partitions
come and go with the layout; a partition of a topic that was made again starts without a past.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.messages import SpeedSource
from penstock.model.broker_logs import BrokerLogSizes, LogName, LogOffsets, LogPlace
from penstock.monitor.core.filters import Row, SpeedFilter
from penstock.monitor.core.log_growth import (
    LogSample,
    Suspicion,
    growth_by_offsets,
    growth_by_sizes,
)
from penstock.monitor.core.window import Window


@dataclass(frozen=True, slots=True)
class MeasuredSpeeds:
    """The speeds of all partitions after one round, in columns; NaN is unknown."""

    names: Sequence[LogName]
    topic_ids: Sequence[str]
    source: SpeedSource
    newest_sample_age_s: float
    bytes_per_s: Row
    raw_bytes_per_s: Row
    records_per_s: Row
    mean_bytes_per_record: Row
    start_offset: Row
    end_offset: Row


class Meter:
    def __init__(
        self,
        speed_filter: SpeedFilter,
        *,
        window_s: float,
        unknown_after_s: float,
        source: SpeedSource = SpeedSource.LOG_DIRS,
    ) -> None:
        self._filter = speed_filter
        self._unknown_after_s = unknown_after_s
        self.source = source
        self._window = Window(window_s)
        self._names: list[LogName] = []
        self._places: list[LogPlace] = []
        self._column: dict[LogName, int] = {}
        self._leader = np.full(0, np.nan)
        self._by_leader: dict[int, tuple[LogName, ...]] = {}
        self._sample = LogSample.unknown(0)
        self._suspicion = Suspicion.none(0)
        self._mean_bytes = np.full(0, np.nan)
        self._last_round_at_s: float | None = None

    @property
    def names(self) -> Sequence[LogName]:
        return self._names

    @property
    def by_leader(self) -> Mapping[int, tuple[LogName, ...]]:
        """The partitions each broker leads; the same tuple as before where nothing changed."""
        return self._by_leader

    def leader_of(self, name: LogName) -> int:
        return self._places[self._column[name]].leader

    def offset_spans(self) -> list[tuple[LogName, int, int]]:
        """First and end offset of each log of which both are known."""
        rows = zip(
            self._names,
            self._sample.start_offset.tolist(),
            self._sample.end_offset.tolist(),
            strict=True,
        )
        return [
            (name, int(start), int(end))
            for name, start, end in rows
            if start == start and end == end  # noqa: PLR0124 -- NaN differs from itself
        ]

    def set_layout(self, layout: Mapping[LogName, LogPlace]) -> None:
        """Measure these partitions from now on, and keep what is known of those that stay."""
        names = sorted(layout)
        kept = [
            self._column[name]
            if name in self._column
            and self._places[self._column[name]].topic_id == layout[name].topic_id
            else -1
            for name in names
        ]
        self._places = [layout[name] for name in names]
        self._leader = np.array([place.leader for place in self._places], dtype=np.float64)
        self._by_leader = _by_leader(names, self._places, self._by_leader)
        if names == self._names and all(column >= 0 for column in kept):
            return
        columns = np.array(kept, dtype=np.intp)
        self._names = names
        self._column = {name: column for column, name in enumerate(names)}
        self._window.rearrange(columns)
        self._sample = LogSample(*(_moved(row, columns, np.nan) for row in _rows(self._sample)))
        self._suspicion = Suspicion(
            shortened=_moved(self._suspicion.shortened, columns, 0.0),
            records=_moved(self._suspicion.records, columns, np.nan),
            implausible=_moved(self._suspicion.implausible, columns, 0.0),
        )
        self._mean_bytes = _moved(self._mean_bytes, columns, np.nan)

    def change_source(self, source: SpeedSource) -> None:
        """Measure differently from now on; the window keeps what was measured before."""
        self.source = source
        self._suspicion = Suspicion.none(len(self._names))

    def add_round(
        self, now_s: float, sizes: Iterable[BrokerLogSizes], offsets: Iterable[LogOffsets]
    ) -> bool:
        """Add one round's answers; True when a log went back, so that the layout may be old."""
        now = self._in_one_sample(sizes, offsets)
        mean, mean_records = self._window.mean_bytes_per_record()
        if self.source is SpeedSource.LOG_DIRS:
            self._mean_bytes = np.where(np.isnan(mean), self._mean_bytes, mean)
            growth = growth_by_sizes(
                self._sample, now, self._mean_bytes, mean_records, self._suspicion
            )
        else:
            growth = growth_by_offsets(self._sample, now, self._mean_bytes)
        begun_at_s = now_s if self._last_round_at_s is None else self._last_round_at_s
        self._window.add(begun_at_s, now_s, growth)
        self._last_round_at_s = now_s
        self._sample = self._sample.updated(now)
        self._suspicion = growth.suspicion
        return bool(growth.restarted.any())

    def learn_record_sizes(self, bytes_per_record: Mapping[LogName, float]) -> None:
        """Take the mean size of some sampled records; the newest sample counts."""
        for name, mean in bytes_per_record.items():
            column = self._column.get(name)
            if column is not None:
                self._mean_bytes[column] = mean

    def speeds(self, now_s: float) -> MeasuredSpeeds:
        is_by_size = self.source is SpeedSource.LOG_DIRS
        seen_at_s = self._sample.size_at_s if is_by_size else self._sample.offsets_at_s
        with np.errstate(invalid="ignore"):
            stale = ~(now_s - seen_at_s <= self._unknown_after_s)
        newest_s = float(np.nanmax(seen_at_s)) if (~np.isnan(seen_at_s)).any() else now_s
        return MeasuredSpeeds(
            names=self._names,
            topic_ids=[place.topic_id for place in self._places],
            source=self.source,
            newest_sample_age_s=max(0.0, now_s - newest_s),
            bytes_per_s=_unknown_where(stale, self._window.bytes_per_s(self._filter)),
            raw_bytes_per_s=_unknown_where(stale, self._window.newest_bytes_per_s()),
            records_per_s=_unknown_where(stale, self._window.records_per_s(self._filter)),
            mean_bytes_per_record=self._mean_bytes.copy(),
            start_offset=self._sample.start_offset,
            end_offset=self._sample.end_offset,
        )

    def _in_one_sample(
        self, sizes: Iterable[BrokerLogSizes], offsets: Iterable[LogOffsets]
    ) -> LogSample:
        """The answers in columns. Sizes of followers are ignored."""
        now = LogSample.unknown(len(self._names))
        now.leader[:] = self._leader
        for answer in sizes:
            size_bytes = self._in_columns(answer.size_bytes)
            mine = (self._leader == answer.broker_id) & ~np.isnan(size_bytes)
            now.size_bytes[mine] = size_bytes[mine]
            now.size_at_s[mine] = answer.taken_at_s
        for reported in offsets:
            start, end = self._in_columns(reported.start), self._in_columns(reported.end)
            now.start_offset[~np.isnan(start)] = start[~np.isnan(start)]
            now.end_offset[~np.isnan(end)] = end[~np.isnan(end)]
            now.offsets_at_s[~np.isnan(end)] = reported.taken_at_s
        return now

    def _in_columns(self, values: Mapping[LogName, int]) -> Row:
        return np.array([values.get(name, np.nan) for name in self._names], dtype=np.float64)


def _by_leader(
    names: Sequence[LogName],
    places: Sequence[LogPlace],
    before: Mapping[int, tuple[LogName, ...]],
) -> dict[int, tuple[LogName, ...]]:
    by_leader: dict[int, list[LogName]] = {}
    for name, place in zip(names, places, strict=True):
        if place.leader >= 0:
            by_leader.setdefault(place.leader, []).append(name)
    groups = {leader: tuple(group) for leader, group in sorted(by_leader.items())}
    return {
        leader: before[leader] if before.get(leader) == group else group
        for leader, group in groups.items()
    }


def _rows(sample: LogSample) -> tuple[Row, ...]:
    return (
        sample.size_bytes,
        sample.size_at_s,
        sample.leader,
        sample.start_offset,
        sample.end_offset,
        sample.offsets_at_s,
    )


def _moved(row: Row, columns: npt.NDArray[np.intp], fresh: float) -> Row:
    moved = np.full(len(columns), fresh)
    moved[columns >= 0] = row[columns[columns >= 0]]
    return moved


def _unknown_where(stale: npt.NDArray[np.bool_], speed: Row) -> Row:
    return np.where(stale, np.nan, speed)
