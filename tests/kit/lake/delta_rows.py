"""The rows of a table of the lake, read by deltalake alone; a table that is not there has none."""

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError


def rows_at(place: str) -> list[tuple[int, int]]:
    """Partition and offset of every row."""
    try:
        table = DeltaTable(place)
    except TableNotFoundError:
        return []
    rows = table.to_pyarrow_table(columns=["partition", "offset"]).to_pylist()
    return sorted((row["partition"], row["offset"]) for row in rows)


def count_at(place: str) -> int:
    """How many rows there are: the footers of the files say it, and no row is read."""
    try:
        table = DeltaTable(place)
    except TableNotFoundError:
        return 0
    return int(table.to_pyarrow_dataset().count_rows())
