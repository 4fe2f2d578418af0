"""Which partitions of the commit topic are about a table.

They are in pairs: one for batches that are offered, and one for what those who commit say to that.
Tables are spread over the pairs by their names. So a writer reads no offers, and who commits reads
only those of its tables' pairs. The number of pairs never changes: all consumers must find the same
one.
"""

import zlib

COMMIT_PAIRS = 8
COMMIT_PARTITIONS = 2 * COMMIT_PAIRS


def offers_partition(table: str) -> int:
    """Where batches of this table are offered."""
    return 2 * (zlib.crc32(table.encode()) % COMMIT_PAIRS)


def answers_partition(table: str) -> int:
    """Where those who commit for this table say so, and answer."""
    return offers_partition(table) + 1
