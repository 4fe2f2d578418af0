"""Who commits for all writers of a table: one of them, which the table's name chooses.

Everybody reads in the log of the table who writes to it, so nobody has to be told. Two may believe
that it is they, while one of them has read less than the other: then both do it, which costs a
lost race. It is one that writes to the table itself, so it knows how many others do. For each
table it is another one, so that the tables of a group are spread over its consumers; and while it
writes, it changes only for one that comes and is chosen before it.
"""

from collections.abc import Iterable
from enum import Enum
from hashlib import blake2b

# With up to so many writers of a table each commits for itself; see decision 0170.
WRITERS_ALONE_MAX = 8
# Who commits for others does so for this long after its own last batch.
SERVES_S = 20.0
# Of the number of a consumer. The log of a table may name writers that are none of ours.
DIGITS_MAX = 10


class Duty(Enum):
    ALONE = "everybody commits for itself"
    COMMITS = "this consumer commits for all"
    OFFERS = "another one commits"


def committer_of(table: str, consumer_ids: Iterable[int]) -> int:
    """The one of these that commits for the table: whose number with its name has the least sum."""
    return min(consumer_ids, key=lambda one: blake2b(f"{table}/{one}".encode()).digest())


def duty_of(own_id: int, table: str, writers: Iterable[str], group: str) -> Duty:
    """`writers` are named as in the log, `data/<group>/<consumer>-<incarnation>`.

    Those of other groups and other tools commit for themselves, whatever we do.
    """
    ids = {own_id} | {one for name in writers if (one := _consumer_id(name, group)) is not None}
    if len(ids) <= WRITERS_ALONE_MAX:
        return Duty.ALONE
    return Duty.COMMITS if committer_of(table, ids) == own_id else Duty.OFFERS


def _consumer_id(writer: str, group: str) -> int | None:
    prefix = f"data/{group}/"
    number, dash, _ = writer.removeprefix(prefix).partition("-")
    is_number = number.isascii() and number.isdecimal() and len(number) <= DIGITS_MAX
    is_ours = writer.startswith(prefix) and bool(dash) and is_number
    return int(number) if is_ours else None
