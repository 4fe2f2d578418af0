"""Looks in, speeds out: the monitor's memory of all partitions, without any I/O.

Every turn the meter is told what the brokers answered since the last one, with times from a
monotonic clock. It lines the answers up in columns (one a partition), works out what was written
since each partition's last sample, keeps that in the window and gives speeds through the filter.
Partitions come and go with the layout; one whose topic was made again has no past.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from penstock.messages import SpeedSource
from penstock.model.broker_logs import BrokerLogSizes, LogName, LogOffsets, LogPlace
from penstock.monitor.core.filters import Row, SpeedFilter
from penstock.monitor.core.log_growth import Levels, Suspicion, written_by_offsets, written_by_sizes
from penstock.monitor.core.window import Window


class Basis(StrEnum):
    """What differences are taken of."""

    SIZES = "sizes"
    OFFSETS = "offsets"


_SOURCE = {Basis.SIZES: SpeedSource.LOG_DIRS, Basis.OFFSETS: SpeedSource.OFFSETS}


@dataclass(frozen=True, slots=True)
class MeasuredSpeeds:
    """One measurement, in columns; NaN is unknown."""

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
        basis: Basis = Basis.SIZES,
    ) -> None:
        self._filter = speed_filter
        self._unknown_after_s = unknown_after_s
        self.basis = basis
        self._window = Window(window_s)
        self._names: list[LogName] = []
        self._places: list[LogPlace] = []
        self._column: dict[LogName, int] = {}
        self._leader = np.full(0, np.nan)
        self._by_leader: dict[int, tuple[LogName, ...]] = {}
        self._levels = Levels.unseen(0)
        self._suspicion = Suspicion.none(0)
        self._mean_bytes = np.full(0, np.nan)
        self._looked_at_s: float | None = None

    @property
    def names(self) -> Sequence[LogName]:
        return self._names

    @property
    def by_leader(self) -> Mapping[int, tuple[LogName, ...]]:
        """The partitions each broker leads. A group that did not change is the same object."""
        return self._by_leader

    def leader_of(self, name: LogName) -> int:
        return self._places[self._column[name]].leader

    def offset_spans(self) -> list[tuple[LogName, int, int]]:
        """Where each log begins and ends, of those of which both are known."""
        rows = zip(
            self._names,
            self._levels.start_offset.tolist(),
            self._levels.end_offset.tolist(),
            strict=True,
        )
        return [
            (name, int(start), int(end))
            for name, start, end in rows
            if start == start and end == end  # noqa: PLR0124 -- NaN differs from itself
        ]

    def arrange(self, layout: Mapping[LogName, LogPlace]) -> None:
        """These partitions there are now. What is known of those that stay the same is kept."""
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
        self._by_leader = _grouped(names, self._places, self._by_leader)
        if names == self._names and all(column >= 0 for column in kept):
            return
        columns = np.array(kept, dtype=np.intp)
        self._names = names
        self._column = {name: column for column, name in enumerate(names)}
        self._window.rearrange(columns)
        self._levels = Levels(*(_moved(row, columns, np.nan) for row in _rows(self._levels)))
        self._suspicion = Suspicion(
            shortened=_moved(self._suspicion.shortened, columns, 0.0),
            records=_moved(self._suspicion.records, columns, np.nan),
            implausible=_moved(self._suspicion.implausible, columns, 0.0),
        )
        self._mean_bytes = _moved(self._mean_bytes, columns, np.nan)

    def change_basis(self, basis: Basis) -> None:
        """From here on differences are of another kind; the window holds what was measured."""
        self.basis = basis
        self._suspicion = Suspicion.none(len(self._names))

    def look(
        self, now_s: float, sizes: Iterable[BrokerLogSizes], offsets: Iterable[LogOffsets]
    ) -> bool:
        """Take in one turn's answers; True when a log went back and the layout should be asked."""
        now = self._levels_of(sizes, offsets)
        mean, mean_records = self._window.mean_bytes_per_record()
        if self.basis is Basis.SIZES:
            self._mean_bytes = np.where(np.isnan(mean), self._mean_bytes, mean)
            written = written_by_sizes(
                self._levels, now, self._mean_bytes, mean_records, self._suspicion
            )
        else:
            written = written_by_offsets(self._levels, now, self._mean_bytes)
        begun_at_s = now_s if self._looked_at_s is None else self._looked_at_s
        self._window.add(begun_at_s, now_s, written)
        self._looked_at_s = now_s
        self._levels = self._levels.then(now)
        self._suspicion = written.suspicion
        return bool(written.restarted.any())

    def learn_record_sizes(self, bytes_per_record: Mapping[LogName, float]) -> None:
        """What a look at some records showed; the newest look counts, as sizes may change."""
        for name, mean in bytes_per_record.items():
            column = self._column.get(name)
            if column is not None:
                self._mean_bytes[column] = mean

    def speeds(self, now_s: float) -> MeasuredSpeeds:
        seen_at_s = (
            self._levels.size_at_s if self.basis is Basis.SIZES else self._levels.offsets_at_s
        )
        with np.errstate(invalid="ignore"):
            stale = ~(now_s - seen_at_s <= self._unknown_after_s)
        newest_s = float(np.nanmax(seen_at_s)) if (~np.isnan(seen_at_s)).any() else now_s
        return MeasuredSpeeds(
            names=self._names,
            topic_ids=[place.topic_id for place in self._places],
            source=_SOURCE[self.basis],
            newest_sample_age_s=max(0.0, now_s - newest_s),
            bytes_per_s=_unless(stale, self._window.bytes_per_s(self._filter)),
            raw_bytes_per_s=_unless(stale, self._window.newest_bytes_per_s()),
            records_per_s=_unless(stale, self._window.records_per_s(self._filter)),
            mean_bytes_per_record=self._mean_bytes.copy(),
            start_offset=self._levels.start_offset,
            end_offset=self._levels.end_offset,
        )

    def _levels_of(self, sizes: Iterable[BrokerLogSizes], offsets: Iterable[LogOffsets]) -> Levels:
        """The answers in columns. A follower's size is not looked at."""
        now = Levels.unseen(len(self._names))
        now.leader[:] = self._leader
        for answer in sizes:
            size_bytes = self._in_columns(answer.size_bytes)
            mine = (self._leader == answer.broker_id) & ~np.isnan(size_bytes)
            now.size_bytes[mine] = size_bytes[mine]
            now.size_at_s[mine] = answer.taken_at_s
        for told in offsets:
            start, end = self._in_columns(told.start), self._in_columns(told.end)
            now.start_offset[~np.isnan(start)] = start[~np.isnan(start)]
            now.end_offset[~np.isnan(end)] = end[~np.isnan(end)]
            now.offsets_at_s[~np.isnan(end)] = told.taken_at_s
        return now

    def _in_columns(self, values: Mapping[LogName, int]) -> Row:
        return np.array([values.get(name, np.nan) for name in self._names], dtype=np.float64)


def _grouped(
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


def _rows(levels: Levels) -> tuple[Row, ...]:
    return (
        levels.size_bytes,
        levels.size_at_s,
        levels.leader,
        levels.start_offset,
        levels.end_offset,
        levels.offsets_at_s,
    )


def _moved(row: Row, columns: npt.NDArray[np.intp], fresh: float) -> Row:
    moved = np.full(len(columns), fresh)
    moved[columns >= 0] = row[columns[columns >= 0]]
    return moved


def _unless(stale: npt.NDArray[np.bool_], speed: Row) -> Row:
    return np.where(stale, np.nan, speed)
