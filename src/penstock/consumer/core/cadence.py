"""How far apart batches begin, so that all writers of a table find their turn to commit.

The commits of one table are made one after another. If every writer commits whenever it likes, the
log has no room from some number of writers on, and most attempts are in vain. So without a backlog
batches begin so far apart that a table's log is busy for half of the time at most. A turn counts
for 25 ms at least, so up to 20 writers on a file system this changes nothing.
"""

LOG_SHARE_MAX = 0.5


def batch_period_ms(round_s: float, period_ms: int, longest_ms: int) -> int:
    """Between the beginnings of two batches, when all writers together need `round_s` to commit."""
    return max(period_ms, min(longest_ms, round(round_s / LOG_SHARE_MAX * 1000)))
