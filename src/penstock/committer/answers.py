"""The thread of a writer that hears who commits, and what became of batches.

It reads only while batches are handed over, or might be.
"""

import threading
import time
from collections.abc import Callable

from penstock.committer.awaited import AwaitedBatches
from penstock.committer.offers import group_folder
from penstock.errors import NotPermittedError, PenstockError
from penstock.kafka_io.commit_topic import CommitTopicReader
from penstock.kafka_io.failures import TopicMissingError
from penstock.messages import CommitAnswer, CommitterPresence
from penstock.messages.commits import BetweenConsumers
from penstock.model.commit_partitions import answers_partition
from penstock.settings import Settings
from penstock.telemetry import get_logger

# Without a batch for so long it reads no more.
LISTENS_S = 60.0
# Not long: Kafka may answer again soon, and until then each writer of a busy table commits alone.
REST_S = 3.0
# A topic that is missing, or that this consumer may not read, stays so until somebody acts.
REST_WITHOUT_TOPIC_S = 60.0
_READ_S = 0.5
_END_GRACE_S = 2.0


class AnswersThread:
    def __init__(
        self, settings: Settings, awaited: AwaitedBatches, prepare: Callable[[], object]
    ) -> None:
        """`prepare` opens what batches are offered with, before the first one waits for it."""
        self._settings = settings
        self._prepare = prepare
        self._awaited = awaited
        self._folder = group_folder(settings.lake.group)
        self._log = get_logger(component="committer")
        self._changed = threading.Condition()
        self._partitions: set[int] = set()
        self._tables: set[str] = set()
        self._until_s = 0.0
        self._rests_until_s = 0.0
        self._told = ""
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def listen(self, table: str) -> None:
        """Hear who commits for this table. Never waits."""
        now_s = time.monotonic()
        with self._changed:
            if self._is_closed or now_s < self._rests_until_s:
                return
            self._partitions.add(answers_partition(table))
            self._tables.add(table)
            self._until_s = now_s + LISTENS_S
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="penstock-commit-answers", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            thread = self._thread
        if thread is not None:
            thread.join(_END_GRACE_S)

    def _run(self) -> None:
        """Whatever fails, batches are committed without this."""
        rest_s = REST_S
        try:
            self._read_on()
        except PenstockError as error:
            if isinstance(error, TopicMissingError | NotPermittedError):
                rest_s = REST_WITHOUT_TOPIC_S
            self._tell(str(error))
        except BaseException:  # noqa: BLE001 -- a panic of native code too: the thread ends, says why
            self._log.exception("commit_topic_not_read")
        self._awaited.forget_committers()
        with self._changed:
            self._rests_until_s = time.monotonic() + rest_s if self._is_wanted() else 0.0
            self._partitions.clear()
            self._tables.clear()
            self._thread = None

    def _tell(self, error: str) -> None:
        """Once, while it stays the same."""
        if error != self._told:
            self._log.warning("commit_topic_not_read", error=error)
        self._told = error

    def _is_wanted(self) -> bool:
        return not self._is_closed and time.monotonic() < self._until_s

    def _read_on(self) -> None:
        settings = self._settings
        self._prepare()
        reader = CommitTopicReader(settings.kafka, settings.topics, settings.lake.group)
        try:
            while True:
                with self._changed:
                    if not self._is_wanted():
                        return
                    partitions = sorted(self._partitions)
                for partition in partitions:
                    reader.follow(partition)
                for message in reader.read(_READ_S):
                    self._take(message)
        finally:
            reader.close()

    def _take(self, message: BetweenConsumers) -> None:
        with self._changed:
            is_of_interest = message.table in self._tables  # anybody may name any number of them
        if isinstance(message, CommitterPresence) and is_of_interest:
            self._awaited.heard(
                message.table,
                commit_s=message.commit_ms / 1000,
                is_leaving=message.is_leaving,
            )
        elif isinstance(message, CommitAnswer):
            if message.committed and is_of_interest:
                self._awaited.heard_version(message.table, message.version)
            self._awaited.answer(self._named(message.committed), message.version)
            self._awaited.answer(self._named(message.refused), None)

    def _named(self, batches: tuple[str, ...]) -> list[str]:
        return [f"{self._folder}{one}" for one in batches]
