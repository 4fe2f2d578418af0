"""How the batches of `many_writers.py` were committed, where one commits for many."""

from typing import Any

from penstock.committer import CommitsTogether
from penstock.pipeline.joint_table import BatchToCommit, Handed


class Counted:
    """Hands batches over, and says what came of the last one."""

    def __init__(self, together: CommitsTogether) -> None:
        self.close, self.last_version = together.close, together.last_version
        self._together = together
        self.last = ""

    def hand_over(self, table: str, batch: BatchToCommit, *given: Any) -> Handed | None:
        handed = self._together.hand_over(table, batch, *given)
        if handed is None:
            self.last = "alone"
        else:
            self.last = "without an answer, alone" if handed.version is None else "by another"
        return handed

    def found_committed(self, table: str) -> None:
        self._together.found_committed(table)
        self.last = "without an answer, by another"
