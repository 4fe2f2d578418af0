"""Naive versions of the published algorithms, to compare the fast ones with.

They scan open consumers one by one in ascending order, without an index. They support only equal
capacities and no other limits.
"""

from collections.abc import Callable, Mapping, Sequence

Item = tuple[str, int]
Owners = Mapping[str, int]
Choice = Callable[[list[int], dict[int, int], int], int | None]


def next_fit_choice(opened: list[int], loads: dict[int, int], capacity_left: int) -> int | None:
    """Only the consumer opened last."""
    last = opened[-1] if opened else None
    return last if last is not None and loads[last] <= capacity_left else None


def first_fit_choice(opened: list[int], loads: dict[int, int], capacity_left: int) -> int | None:
    return next((c for c in sorted(opened) if loads[c] <= capacity_left), None)


def best_fit_choice(opened: list[int], loads: dict[int, int], capacity_left: int) -> int | None:
    chosen = None
    for consumer in sorted(opened):
        fits = loads[consumer] <= capacity_left
        if fits and (chosen is None or loads[consumer] > loads[chosen]):
            chosen = consumer
    return chosen


def worst_fit_choice(opened: list[int], loads: dict[int, int], capacity_left: int) -> int | None:
    chosen = None
    for consumer in sorted(opened):
        fits = loads[consumer] <= capacity_left
        if fits and (chosen is None or loads[consumer] < loads[chosen]):
            chosen = consumer
    return chosen


class NaiveBins:
    def __init__(self, capacity: int, owners: Owners, choice: Choice) -> None:
        self.capacity = capacity
        self.owners = owners
        self.choice = choice
        self.opened: list[int] = []
        self.loads: dict[int, int] = {}
        self.held: dict[int, list[str]] = {}

    def open(self, consumer: int) -> None:
        self.opened.append(consumer)
        self.loads[consumer] = 0
        self.held[consumer] = []

    def put(self, item: Item, consumer: int) -> None:
        self.loads[consumer] += item[1]
        self.held[consumer].append(item[0])

    def place_among_open(self, item: Item) -> bool:
        consumer = self.choice(self.opened, self.loads, self.capacity - item[1])
        if consumer is None:
            return False
        self.put(item, consumer)
        return True

    def place(self, item: Item) -> None:
        if self.place_among_open(item):
            return
        consumer = self.owners.get(item[0], 0)
        if consumer == 0 or consumer in self.opened:
            consumer = 1
            while consumer in self.opened:
                consumer += 1
        self.open(consumer)
        self.put(item, consumer)

    def answer(self) -> dict[int, set[str]]:
        return {consumer: set(names) for consumer, names in self.held.items() if names}


def naive_any_fit(
    items: Sequence[Item], owners: Owners, capacity: int, choice: Choice
) -> dict[int, set[str]]:
    """Items in the order given."""
    bins = NaiveBins(capacity, owners, choice)
    if choice is next_fit_choice and items:
        bins.open(1)
    for item in items:
        bins.place(item)
    return bins.answer()


def naive_modified_any_fit(
    items: Sequence[Item],
    owners: Owners,
    capacity: int,
    choice: Choice,
    *,
    by_fastest_partition: bool,
) -> dict[int, set[str]]:
    """Items in the order of their names."""
    bins = NaiveBins(capacity, owners, choice)
    pool = [item for item in items if item[0] not in owners]
    by_consumer: dict[int, list[Item]] = {}
    for item in items:
        if item[0] in owners:
            by_consumer.setdefault(owners[item[0]], []).append(item)

    def weight(consumer: int) -> int:
        sizes = [size for _, size in by_consumer[consumer]]
        return max(sizes) if by_fastest_partition else sum(sizes)

    for consumer in sorted(by_consumer, key=lambda c: (-weight(c), c)):
        rest = sorted(by_consumer[consumer], key=lambda item: (item[1], items.index(item)))
        while rest and bins.place_among_open(rest[0]):
            rest.pop(0)
        rest.reverse()
        if rest:
            bins.open(consumer)
            bins.put(rest.pop(0), consumer)
        while rest and bins.loads[consumer] + rest[0][1] <= capacity:
            bins.put(rest.pop(0), consumer)
        pool += rest
    for item in sorted(pool, key=lambda item: (-item[1], items.index(item))):
        bins.place(item)
    return bins.answer()
