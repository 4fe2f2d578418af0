"""When a writer hands a batch over, and how long it waits for the answer.

It hands over only while it hears somebody who commits for the table. Whoever refuses a batch is not
asked again for a while, and the longer the more often it happens. An answer that does not come is
waited for while who commits is still heard: it may be slow, and to commit beside it makes both
slower. If one is missed, it must be heard again; after the second in a row it counts as refused.
"""

from dataclasses import dataclass, replace

# Who commits says so this often, and is heard for at least so long.
PRESENCE_PERIOD_S = 1.0
HEARD_S_MIN = 3.5
ANSWER_S_MIN, ANSWER_S_MAX = 2.0, 10.0
# The answer waits for the commit before it, and for its own: with some room for both.
COMMITS_WAITED_FOR = 4
REFRAIN_FIRST_S, REFRAIN_S_MAX = 2.0, 60.0


@dataclass(frozen=True, slots=True)
class Committer:
    """What a writer knows of who commits for one table."""

    heard_s: float | None = None
    commit_s: float = 0.0
    # Batches in a row that it did not commit, and until when no other is handed over.
    not_committed_in_a_row: int = 0
    refrains_until_s: float = 0.0

    @property
    def answer_wait_s(self) -> float:
        """How long to wait for an answer: it follows the time that commits take."""
        return min(ANSWER_S_MAX, max(ANSWER_S_MIN, COMMITS_WAITED_FOR * self.commit_s))

    def waits_until_s(self, offered_s: float) -> float:
        """Until when the answer to a batch is waited for that was handed over at `offered_s`."""
        until_s = offered_s + self.answer_wait_s
        if self.heard_s is None or self.heard_s <= offered_s:
            return until_s
        return min(offered_s + ANSWER_S_MAX, max(until_s, self.heard_s + HEARD_S_MIN))

    def takes_batches(self, now_s: float) -> bool:
        """Whether a batch should be handed over now."""
        if self.heard_s is None or self.refrains(now_s):
            return False
        # One of an older version says nothing while it commits.
        return now_s - self.heard_s <= max(HEARD_S_MIN, self.answer_wait_s)

    def refrains(self, now_s: float) -> bool:
        """Whether it is too soon after a batch that was not committed."""
        return now_s < self.refrains_until_s

    def heard(self, now_s: float, commit_s: float) -> "Committer":
        return replace(self, heard_s=now_s, commit_s=commit_s)

    def left(self) -> "Committer":
        """It has said that it does so no more."""
        return replace(self, heard_s=None)

    def committed(self) -> "Committer":
        return replace(self, not_committed_in_a_row=0, refrains_until_s=0.0)

    def not_answered(self, now_s: float) -> "Committer":
        """It must be heard again; after more than one in a row also not too soon."""
        if self.not_committed_in_a_row:
            return self.not_committed(now_s)
        return replace(self, heard_s=None, not_committed_in_a_row=1)

    def not_committed(self, now_s: float) -> "Committer":
        """It must be heard again, and not too soon."""
        refrain_s = min(REFRAIN_S_MAX, REFRAIN_FIRST_S * 2 ** min(self.not_committed_in_a_row, 10))
        return replace(
            self,
            heard_s=None,
            not_committed_in_a_row=self.not_committed_in_a_row + 1,
            refrains_until_s=now_s + refrain_s,
        )
