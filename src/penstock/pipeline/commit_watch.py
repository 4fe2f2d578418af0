"""Who is told of commits as they happen: the consumer's metrics. It changes nothing."""

from typing import Protocol


class CommitWatch(Protocol):
    """Called by the thread that commits; must not wait."""

    def committed(self, table: str, version: int, log_entries: int) -> None:
        """A commit made this version; a reader reads so many entries after a checkpoint."""

    def conflicted(self, table: str) -> None:
        """Another writer was quicker with a version; the commit is checked and tried again."""


class Unwatched:
    """Nobody wants to know."""

    def committed(self, table: str, version: int, log_entries: int) -> None:
        pass

    def conflicted(self, table: str) -> None:
        pass


UNWATCHED = Unwatched()
