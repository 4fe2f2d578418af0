"""Which partitions of the commit topic are about a table.

A lane is a pair of partitions: batches that are offered, and what those who commit say. Tables are
spread over the lanes by their names. So a writer reads no offers, and who commits reads only those
of its lanes. The number of lanes never changes: all consumers must find the same one.
"""

import zlib

COMMIT_LANES = 8
COMMIT_PARTITIONS = 2 * COMMIT_LANES


def offers_partition(table: str) -> int:
    """Where batches of this table are offered."""
    return 2 * (zlib.crc32(table.encode()) % COMMIT_LANES)


def answers_partition(table: str) -> int:
    """Where those who commit for this table say so, and answer."""
    return offers_partition(table) + 1
