"""Which files are joined, for any files and for a whole day of commits."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.pipeline import join_plan
from penstock.pipeline.join_plan import (
    GROWTH,
    FoundFolders,
    Join,
    JoinRules,
    folders_of,
    joins_of,
    next_finish_ms,
)
from penstock.pipeline.table_files import ActiveFile

MB = 1_000_000
FILE_SIZE = 128 * 2**20
MINUTE_MS, HOUR_MS, DAY_S = 60_000, 3_600_000, 86_400
Plan = Callable[[Sequence[ActiveFile], JoinRules], list[Join]]


@dataclass
class Folders:
    """A table as the plan sees it. What is joined shrinks by `shrinks_to` the first time."""

    shrinks_to: float = 1.0
    files: dict[str, ActiveFile] = field(default_factory=dict)
    rewrites: dict[str, int] = field(default_factory=dict)
    rewritten_bytes: int = 0
    arrived_bytes: int = 0
    most_rewrites: int = 0
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def arrives(self, size_bytes: int, at_ms: int, date: str = "", topic: str = "a") -> None:
        name = f"data/g/1-1/{next(self.numbers)}/topic-{topic}/part-0.parquet"
        self._add(name, size_bytes, at_ms, date, 0)
        self.arrived_bytes += size_bytes

    def _add(self, name: str, size_bytes: int, at_ms: int, date: str, rewrites: int) -> None:
        values = {"date": date} if date else {}
        self.files[name] = ActiveFile(name, size_bytes, at_ms, 1, values)
        self.rewrites[name] = rewrites
        self.most_rewrites = max(self.most_rewrites, rewrites)

    def run(self, now_ms: int, *, quiet_ms: int = HOUR_MS, plan: Plan = joins_of) -> list[Join]:
        joins = plan(list(self.files.values()), JoinRules(FILE_SIZE, now_ms, quiet_ms))
        for join in joins:
            was_new = [file for file in join.files if not self.rewrites[file.path]]
            shrunk = sum(round(file.size_bytes * (1 - self.shrinks_to)) for file in was_new)
            rewrites = 1 + max(self.rewrites[file.path] for file in join.files)
            first = join.files[0]
            for file in join.files:
                del self.files[file.path]
            self.rewritten_bytes += join.size_bytes
            kind = join_plan.FINISHED if join.is_finishing else "part"
            topic = join_plan.topic_folder(first.path)
            name = f"data/g/compaction/{next(self.numbers)}/{topic}/{kind}-0.parquet"
            date = first.partition_values.get("date") or ""
            self._add(name, join.size_bytes - shrunk, now_ms, date, rewrites)
        return joins

    @property
    def files_allowed(self) -> float:
        """What the issue allows."""
        return 1.5 * sum(file.size_bytes for file in self.files.values()) / FILE_SIZE + 300


sizes = st.one_of(st.integers(500, 100_000), st.integers(1, 200).map(lambda mb: mb * MB))
some_files = st.lists(
    st.tuples(sizes, st.integers(0, HOUR_MS), st.sampled_from("xyz"), st.sampled_from("ab")),
    max_size=80,
)


def _folders(given_files: Iterable[tuple[int, int, str, str]]) -> Folders:
    folders = Folders()
    for size_bytes, at_ms, date, topic in given_files:
        folders.arrives(size_bytes, at_ms, date, topic)
    return folders


@given(given_files=some_files, now_ms=st.integers(0, 3 * HOUR_MS), finishes_all=st.booleans())
def test_only_files_of_one_folder_and_topic_become_one(
    given_files: list[tuple[int, int, str, str]], now_ms: int, *, finishes_all: bool
) -> None:
    """No file is in two joins, none is made larger than four thirds, and none is joined alone."""
    files = list(_folders(given_files).files.values())
    joins = joins_of(files, JoinRules(FILE_SIZE, now_ms, HOUR_MS, finishes_all=finishes_all))
    joined = [file.path for join in joins for file in join.files]
    assert len(joined) == len(set(joined))
    for join in joins:
        assert len(join.files) >= 2
        assert join.size_bytes <= 4 / 3 * FILE_SIZE
        assert (
            len({join_plan.kind_of(file.path, file.partition_values) for file in join.files}) == 1
        )
        times = [file.modified_at_ms for file in join.files]
        assert times == sorted(times), "rows stay in the order in which they came"
        largest = max(file.size_bytes for file in join.files)
        is_grown = join.size_bytes >= GROWTH * largest
        assert is_grown or join.is_last


@given(some_files)
def test_a_quiet_folder_has_as_few_files_as_the_size_allows(
    given_files: list[tuple[int, int, str, str]],
) -> None:
    """At most one file of each folder and topic is not large enough, and then nothing is left."""
    folders = _folders(given_files)
    folders.run(3 * HOUR_MS)
    small: dict[object, int] = {}
    for file in folders.files.values():
        if file.size_bytes < FILE_SIZE * 2 / 3:
            kind = join_plan.kind_of(file.path, file.partition_values)
            small[kind] = small.get(kind, 0) + 1
    assert all(count == 1 for count in small.values())
    assert folders.run(9 * HOUR_MS) == []


@given(
    st.lists(st.tuples(sizes, st.integers(1, 20)), min_size=1, max_size=40),
    st.floats(0.6, 1.0),
)
def test_a_byte_is_rewritten_a_bounded_number_of_times(
    arrivals: list[tuple[int, int]], shrinks_to: float
) -> None:
    """However files come: each rewrite makes the file a multiple, and then it is large enough."""
    folders = Folders(shrinks_to=shrinks_to)
    now_ms = 0
    for size_bytes, count in arrivals:
        for _ in range(count):
            folders.arrives(size_bytes, now_ms)
        now_ms += MINUTE_MS
        folders.run(now_ms)
    folders.run(now_ms + HOUR_MS)
    smallest = min(size_bytes for size_bytes, _ in arrivals)
    growths = math.log(FILE_SIZE / smallest, GROWTH * shrinks_to)
    # Once in time, once when it is quiet, and once more where a joined file shrank too far.
    assert folders.most_rewrites <= math.ceil(growths) + 3


def a_day() -> Folders:
    """One commit of 1 MB a second, and a few late records of the day before."""
    folders = Folders()
    for second in range(DAY_S):
        folders.arrives(MB, second * 1000, "today")
        if second % 3_000 == 0:
            folders.arrives(2_000, second * 1000, "yesterday")
        if second % 60 == 59:
            folders.run((second + 1) * 1000)
        if second % 3_600 == 3_599:
            assert len(folders.files) <= folders.files_allowed
    return folders


def test_a_day_at_one_commit_a_second_stays_within_what_is_allowed() -> None:
    """At every hour of the day; no byte is rewritten more than three times, two on average."""
    folders = a_day()
    assert len(folders.files) <= folders.files_allowed
    assert folders.most_rewrites <= 3
    assert folders.rewritten_bytes <= 2.1 * folders.arrived_bytes
    folders.run(2 * DAY_S * 1000)
    assert len(folders.files) <= folders.arrived_bytes / FILE_SIZE + 10


def test_joining_everything_each_time_would_cost_far_more() -> None:
    """What the steps are for: the same hour with one large file that is rewritten each minute."""

    def at_once(files: Sequence[ActiveFile], rules: JoinRules) -> list[Join]:
        return joins_of(files, JoinRules(rules.file_size, rules.now_ms, 0, finishes_all=True))

    hours: list[Folders] = []
    for plan in (joins_of, at_once):
        folders = Folders()
        for second in range(7200):
            folders.arrives(20_000, second * 1000)
            if second % 60 == 59:
                folders.run((second + 1) * 1000, plan=plan)
        hours.append(folders)
    steps, once = hours
    assert steps.rewritten_bytes <= 3 * steps.arrived_bytes
    assert once.rewritten_bytes > 10 * steps.rewritten_bytes


def test_the_time_is_named_when_a_folder_becomes_quiet() -> None:
    """So that nobody has to look before; nothing is named where one file is left."""
    folders = Folders()
    folders.arrives(MB, 5_000, "x")
    rules = JoinRules(FILE_SIZE, 10_000, HOUR_MS)
    assert next_finish_ms(folders_of(folders.files.values(), rules), rules) is None
    folders.arrives(MB, 7_000, "x")
    assert next_finish_ms(folders_of(folders.files.values(), rules), rules) == 7_000 + HOUR_MS
    assert folders.run(7_000 + HOUR_MS - 1) == []
    assert len(folders.run(7_000 + HOUR_MS)) == 1
    assert next_finish_ms(folders_of(folders.files.values(), rules), rules) is None


def test_a_finished_folder_is_joined_again_only_for_as_much_as_it_had_left_small() -> None:
    """A late record a day does not rewrite a large file every day."""
    folders = Folders()
    folders.arrives(60 * MB, 0)
    folders.arrives(1 * MB, 0)
    assert len(folders.run(HOUR_MS)) == 1
    for day in range(1, 15):
        folders.arrives(MB, day * DAY_S * 1000)
        assert folders.run(day * DAY_S * 1000 + HOUR_MS) == []
    folders.arrives(50 * MB, 20 * DAY_S * 1000)
    (join,) = folders.run(20 * DAY_S * 1000 + HOUR_MS)
    assert join.is_finishing
    assert len(join.files) == 16
    assert len(folders.files) == 1


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 99)), max_size=60), st.integers(1, 20))
def test_no_more_small_files_are_held_than_allowed(
    given_files: list[tuple[int, int]], small_max: int
) -> None:
    """Some are always held, none twice, and all of them when there is room."""
    found = FoundFolders(JoinRules(FILE_SIZE, 0, HOUR_MS), small_max)
    paths = []
    for number, (topic, size_bytes) in enumerate(given_files):
        file = ActiveFile(f"data/g/1-1/{number}/topic-{topic}/f", size_bytes, number, 1, {})
        kind = join_plan.kind_of(file.path, {})
        found.saw(kind, number)
        found.add_small(kind, file)
        paths.append(file.path)
    held = [file.path for folder in found.folders() for file in folder.small]
    assert len(held) == len(set(held)) <= small_max
    assert set(held) <= set(paths)
    assert bool(held) == bool(paths)
    assert found.is_whole == (len(held) == len(paths))
    if len(paths) <= small_max:
        assert found.is_whole


def test_every_folder_has_its_turn() -> None:
    """Which folders are held changes from look to look."""
    seen = set()
    for now_ms in range(0, 60 * MINUTE_MS, MINUTE_MS):
        found = FoundFolders(JoinRules(FILE_SIZE, now_ms, HOUR_MS), 8)
        for number in range(40):
            path = f"data/g/1-1/{number}/topic-{number % 10}/f"
            kind = join_plan.kind_of(path, {})
            found.saw(kind, number)
            found.add_small(kind, ActiveFile(path, 1, number, 1, {}))
        assert not found.is_whole
        seen |= {file.path for folder in found.folders() for file in folder.small}
    assert len({path.split("/")[-2] for path in seen}) == 10


def test_folders_with_one_number_are_held_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are made of names, and names of values in records: two folders may have the same."""
    monkeypatch.setattr(FoundFolders, "_number", lambda *_: 7)
    found = FoundFolders(JoinRules(FILE_SIZE, 0, HOUR_MS), 4)
    for number in range(12):
        kind = (f"topic-{number % 3}",)
        found.saw(kind, number)
        found.add_small(kind, ActiveFile(f"{number}", 1, number, 1, {}))
    assert sorted(len(folder.small) for folder in found.folders()) == [1, 1, 2]
    assert not found.is_whole
