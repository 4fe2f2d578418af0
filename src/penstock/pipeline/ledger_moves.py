"""What a commit does to the ledger, and how it is refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.model import Epoch, TopicPartition
from penstock.pipeline.batch import Claim, epoch_ids
from penstock.pipeline.failures import StaleWriterError
from penstock.pipeline.table_state import Transactions


@dataclass(frozen=True, slots=True)
class LedgerMove:
    """One ledger entry's step: the offset it must hold now, and the one it will hold."""

    partition: TopicPartition
    application_id: str
    expected: int | None
    next_offset: int
    claim: Claim | None = None
    # Of the Kafka leader whose log reached to `next_offset`.
    leader_epoch: int | None = None

    def is_allowed(self, stored: int | None) -> bool:
        """Only a batch planned from the stored offset may move it."""
        return stored == self.expected

    def is_outdated(self, last_epoch: Epoch | None) -> bool:
        """Whether an owner with a later epoch has committed already."""
        return self.claim is not None and last_epoch is not None and last_epoch > self.claim.epoch

    def is_in(self, ledger: Transactions) -> bool:
        """Whether the ledger has this step behind it: offsets and epochs only grow."""
        stored = ledger.get(self.application_id)
        if stored is None or stored < self.next_offset:
            return False
        if self.claim is None:
            return True
        last = stored_claim(ledger, self.application_id, self.claim.authority)
        return last is not None and last >= self.claim.epoch


def stored_claim(ledger: Transactions, application_id: str, authority: str) -> Epoch | None:
    """The epoch of an entry's last commit under this authority."""
    controller, number = (ledger.get(name) for name in epoch_ids(application_id, authority))
    return None if controller is None or number is None else Epoch(controller, number)


def all_are_in(ledger: Transactions, moves: Sequence[LedgerMove]) -> bool:
    """Whether the ledger shows that these steps were made. It cannot show a commit without any."""
    return bool(moves) and all(move.is_in(ledger) for move in moves)


class StaleLedgerError(StaleWriterError):
    """Names the entries that another writer moved, and their offsets."""

    def __init__(self, table: str, stored: Mapping[TopicPartition, int | None]) -> None:
        moved = ", ".join(f"{place} at {offset}" for place, offset in sorted(stored.items()))
        super().__init__(f"Another writer has moved the ledger of table {table}: {moved}.")
        self.stored = dict(stored)


class FilesReplacedError(StaleWriterError):
    """A file that should be replaced is no longer as it was read."""
