"""A consumer's part in commits for many: it hands batches over, or commits for the others.

    together = CommitsTogether(settings, writer)
    Pipeline(settings, session, hand_over=together)

Nothing is opened before a table has many writers: a small group has no thread and no connection
more. Every call that waits does so for a bounded time, and then its caller commits by itself. A
consumer that may not write to the topic does so at once, and looks now and then whether it may.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from penstock.committer.answers import REST_WITHOUT_TOPIC_S, AnswersThread
from penstock.committer.awaited import AwaitedBatches
from penstock.committer.core.duty import Duty, duty_of
from penstock.committer.offers import offer_of
from penstock.committer.serving import ServingThread
from penstock.errors import NotPermittedError, PenstockError
from penstock.kafka_io.commit_topic import CommitTopicWriter
from penstock.kafka_io.failures import TopicMissingError
from penstock.pipeline.batch import Writer
from penstock.pipeline.commit_watch import UNWATCHED, CommitWatch
from penstock.pipeline.joint_table import BatchToCommit, Handed
from penstock.settings import Settings
from penstock.telemetry import get_logger

# Who waits for an answer looks so often whether its message was refused.
_LOOK_EVERY_S = 0.1

Point = Callable[[str], None]


class CommitsTogether:
    """Any thread may hand over; one object a process."""

    def __init__(
        self,
        settings: Settings,
        writer: Writer,
        *,
        at_point: Point = lambda _: None,
        watch: CommitWatch = UNWATCHED,
    ) -> None:
        """`at_point` is called with the name of each point passed, so that tests can stop there."""
        self._settings = settings
        self._writer = writer
        self._at_point = at_point
        self._log = get_logger(component="committer")
        self._awaited = AwaitedBatches()
        self._lock = threading.Lock()
        self._sender: CommitTopicWriter | None = None
        # What this consumer sends is refused, as far as is known, until then.
        self._refused_until_s = 0.0
        self._refused_told = ""
        self._serving = ServingThread(
            settings, writer, self._send_to, self._awaited, at_point, watch
        )
        self._answers = AnswersThread(settings, self._awaited, self._send_to)

    def hand_over(
        self,
        table: str,
        batch: BatchToCommit,
        writers: frozenset[str],
        key: Callable[[], bytes],
    ) -> Handed | None:
        duty = duty_of(self._writer.consumer_id, table, writers, self._settings.lake.group)
        if duty is Duty.ALONE or self._awaited.has_given_up or self._is_refused():
            return None
        if duty is Duty.COMMITS:
            return self._commit_here(table, batch)
        self._answers.listen(table)
        known = self._awaited.committer(table)
        if not known.takes_batches(time.monotonic()):
            return None
        return self._offer(table, batch, key)

    def found_committed(self, table: str) -> None:
        """A batch without an answer is in the log: who commits was slow, and commits."""
        self._awaited.note_outcome(table, is_committed=True)

    def last_version(self, table: str) -> int:
        return self._awaited.last_version(table)

    def _offer(self, table: str, batch: BatchToCommit, key: Callable[[], bytes]) -> Handed | None:
        """To the one that commits for the others; None if it was certainly not offered."""
        with self._awaited.waiting_for(batch.name) as awaited:
            try:
                offer = offer_of(table, batch, self._settings.lake.group, self._writer, key())
                if offer is None:
                    return None
                sender = self._send_to()
            except PenstockError as error:
                self._log.warning("batch_not_offered", table=table, error=str(error))
                return None
            offered_s = time.monotonic()
            try:
                sender.send(offer)
            except PenstockError as error:
                # It may be under way all the same: its writer must look into the log.
                self._note_refusal(error)
                self._log.warning("batch_not_offered", table=table, error=str(error))
                return Handed()
            self._at_point("batch-offered")
            is_answered = awaited.wait_on(lambda: self._wait_left_s(sender, table, offered_s))
        self._at_point("batch-answered")
        if is_answered:
            self._awaited.note_outcome(table, is_committed=awaited.version is not None)
        elif not self._is_refused():  # a refused message is no fault of who commits
            self._awaited.note_missed(table)
            self._log.info("no_answer_to_batch", table=table, batch=batch.name)
        return Handed(awaited.version)

    def _wait_left_s(self, sender: CommitTopicWriter, table: str, offered_s: float) -> float:
        """Not all of it at once; none for the answer to a message that was refused."""
        sender.poll()
        if self._is_refused():
            return 0.0
        left_s = self._awaited.committer(table).waits_until_s(offered_s) - time.monotonic()
        return min(_LOOK_EVERY_S, left_s)

    def _commit_here(self, table: str, batch: BatchToCommit) -> Handed | None:
        """By the thread that commits for the others, together with theirs."""
        if self._awaited.committer(table).refrains(time.monotonic()):
            return None
        with self._awaited.waiting_for(batch.name) as awaited:
            if not self._serving.serve(table, batch):
                return None
            awaited.wait(self._serving.answer_wait_s(table))
        self._awaited.note_outcome(table, is_committed=awaited.version is not None)
        return Handed(awaited.version)

    def give_up(self) -> None:
        """Whoever waits now waits no longer, and nobody does from now on: the consumer ends."""
        self._awaited.give_up()

    def close(self) -> None:
        """Say that this consumer commits for nobody any more, and end the threads."""
        self._serving.close()
        self._answers.close()
        self._awaited.give_up()

    def _send_to(self) -> CommitTopicWriter:
        with self._lock:
            if self._sender is None:
                self._sender = CommitTopicWriter(
                    self._settings.kafka,
                    self._settings.topics,
                    self._settings.lake.group,
                    self._not_delivered,
                )
            return self._sender

    def _is_refused(self) -> bool:
        return time.monotonic() < self._refused_until_s

    def _note_refusal(self, error: Exception) -> None:
        """A missing right or topic stays so until somebody acts. Told once while it is the same."""
        if not isinstance(error, NotPermittedError | TopicMissingError):
            return
        self._refused_until_s = time.monotonic() + REST_WITHOUT_TOPIC_S
        told, self._refused_told = self._refused_told, str(error)
        if told != str(error):
            self._log.warning("commit_message_refused", error=str(error))

    def _not_delivered(self, error: Exception) -> None:
        with suppress(Exception):
            self._note_refusal(error)
            self._log.info("commit_message_lost", error=str(error))
