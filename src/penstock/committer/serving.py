"""The thread that commits for the other writers of a table.

It reads what is offered, makes one commit for all that wait, and answers. It says that it is there
only once it reads: a batch that is handed over is then never overheard. When a table cannot be
opened or committed, it leaves that one; when anything else fails, it says nothing for a while. Then
everybody commits for itself.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from penstock.committer.awaited import AwaitedBatches
from penstock.committer.core.duty import SERVES_S
from penstock.committer.core.gathering import Waiting, commit_period_s
from penstock.committer.core.waiting import Committer
from penstock.committer.offers import batch_of, group_folder, is_signed
from penstock.committer.presences import Presences
from penstock.errors import NotPermittedError, PenstockError, UnreachableError
from penstock.kafka_io.commit_topic import CommitTopicReader, CommitTopicWriter
from penstock.kafka_io.failures import TopicMissingError
from penstock.messages import CommitAnswer, CommitterPresence, OfferedBatch
from penstock.messages.commits import BATCHES_PER_ANSWER_MAX, BetweenConsumers
from penstock.model.commit_partitions import offers_partition
from penstock.pipeline.batch import Writer
from penstock.pipeline.checkpoints import CheckpointMaker
from penstock.pipeline.commit_watch import CommitWatch
from penstock.pipeline.joint_table import BatchToCommit, JointTable
from penstock.settings import Settings
from penstock.telemetry import get_logger

# After a failure nothing is committed for others for so long; less if only Kafka was away, and more
# if the topic is missing or not permitted, until somebody acts.
REST_S, KAFKA_REST_S, REST_WITHOUT_TOPIC_S = 30.0, 3.0, 60.0
_READ_S = 0.05
_LAST_READ_S = 0.2
_KEY_PERIOD_S = 5.0
_END_GRACE_S = 3.0


@dataclass(slots=True)
class ServedTable:
    """A table for which this process commits, while its own batches come."""

    table: JointTable
    until_s: float
    waiting: Waiting[BatchToCommit] = field(default_factory=Waiting)
    # How long its last commit took.
    commit_s: float = 0.0
    # When a key that does not fit may be read again.
    key_due_s: float = 0.0


class ServingThread:
    def __init__(
        self,
        settings: Settings,
        writer: Writer,
        sender: Callable[[], CommitTopicWriter],
        awaited: AwaitedBatches,
        at_point: Callable[[str], None],
        watch: CommitWatch,
    ) -> None:
        self._settings, self._writer = settings, writer
        self._sender, self._awaited, self._at_point = sender, awaited, at_point
        self._watch = watch
        self._log = get_logger(component="committer")
        self._checkpoints = CheckpointMaker(settings.lake)
        self._folder = group_folder(settings.lake.group)
        self._presences = Presences(self._say_presence)
        self._commits = 0
        self._unsigned = 0
        # The last error of each table, and under no name that of all.
        self._told: dict[str, str] = {}
        self._lock = threading.Lock()
        # By any thread: tables that are asked for, with this consumer's own batches.
        self._asked: list[tuple[str, BatchToCommit]] = []
        self._commit_s: dict[str, float] = {}
        self._rests_until_s = 0.0
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def serve(self, table: str, batch: BatchToCommit) -> bool:
        """Commit this batch, and for a while those that others offer; False if not now."""
        with self._lock:
            if self._is_closed or time.monotonic() < self._rests_until_s:
                return False
            self._asked.append((table, batch))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="penstock-committer", daemon=True
                )
                self._thread.start()
            return True

    def answer_wait_s(self, table: str) -> float:
        with self._lock:
            return Committer(commit_s=self._commit_s.get(table, 0.0)).answer_wait_s

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            thread = self._thread
        if thread is not None:
            thread.join(_END_GRACE_S)
        self._checkpoints.close()

    def _run(self) -> None:
        served: dict[str, ServedTable] = {}
        rest_s = REST_S
        self._presences = Presences(self._say_presence)
        try:
            self._presences.begin()
            self._serve_on(served)
            rest_s = 0.0
        except PenstockError as error:
            if isinstance(error, UnreachableError):
                rest_s = KAFKA_REST_S
            elif isinstance(error, TopicMissingError | NotPermittedError):
                rest_s = REST_WITHOUT_TOPIC_S
            self._tell("", error)
        except BaseException:  # noqa: BLE001 -- a panic of native code too: the thread ends, says why
            self._log.exception("not_committed_together")
        self._presences.end()
        try:
            if rest_s:
                self._leave(served)
        finally:
            self._give_back(served, rest_s)

    def _give_back(self, served: Mapping[str, ServedTable], rest_s: float) -> None:
        """The thread ends. Waiting writers commit alone; the next batch begins another thread."""
        with self._lock:
            self._rests_until_s = time.monotonic() + rest_s
            left, self._asked = self._asked, []
            self._thread = None
        names = [batch.name for _, batch in left]
        names += [batch.name for one in served.values() for batch in one.waiting.batches]
        self._awaited.answer(names, None)

    def _tell(self, table: str, error: PenstockError) -> None:
        """Once, while it stays the same."""
        text = str(error)
        if self._told.get(table) != text:
            named = {"table": table} if table else {}
            self._log.warning("not_committed_together", error=text, **named)
        self._told[table] = text

    def _serve_on(self, served: dict[str, ServedTable]) -> None:
        """Until there is no table to serve."""
        settings = self._settings
        reader = CommitTopicReader(settings.kafka, settings.topics, settings.lake.group)
        try:
            while True:
                self._presences.goes_on()
                self._take_asked(served, reader)
                self._let_go(served, reader)
                with self._lock:
                    if not served and (self._is_closed or not self._asked):
                        return
                for message in reader.read(_READ_S):
                    self._take_offer(served, message)
                for name, one in served.items():
                    self._presences.goes_on()
                    self._drop_late(name, one)
                    if one.waiting.is_due(time.monotonic(), self._period_s(one)):
                        self._commit(name, one)
        finally:
            reader.close()

    def _take_asked(self, served: dict[str, ServedTable], reader: CommitTopicReader) -> None:
        with self._lock:
            asked, self._asked = self._asked, []
        try:
            for name, batch in asked:
                self._take_own(served, reader, name, batch)
        except BaseException:
            self._awaited.answer([batch.name for _, batch in asked], None)
            raise

    def _take_own(
        self,
        served: dict[str, ServedTable],
        reader: CommitTopicReader,
        name: str,
        batch: BatchToCommit,
    ) -> None:
        if name not in served:
            try:
                table = self._open(name)
            except PenstockError as error:
                # Only this table is not served.
                self._tell(name, error)
                self._awaited.answer([batch.name], None)
                return
            reader.follow(offers_partition(name))
            served[name] = ServedTable(table, 0.0)
            self._presences.add(name)
        one = served[name]
        one.until_s = time.monotonic() + SERVES_S
        one.waiting = one.waiting.with_offer(batch, time.monotonic())

    def _open(self, name: str) -> JointTable:
        lake = self._settings.lake
        table = JointTable(lake, name, on_commit=self._checkpoints.committed, watch=self._watch)
        table.require_there()
        table.commit_key()
        return table

    def _let_go(self, served: dict[str, ServedTable], reader: CommitTopicReader) -> None:
        """Commit for others no more, but what they have handed over already."""
        now_s = time.monotonic()
        with self._lock:
            is_closed = self._is_closed
        ended = [name for name, one in served.items() if is_closed or now_s >= one.until_s]
        if ended:
            self._leave(ended)
            for message in reader.read(_LAST_READ_S):
                self._take_offer(served, message)
        for name in ended:
            if served[name].waiting.batches:
                self._commit(name, served[name])
            self._awaited.answer([one.name for one in served.pop(name).waiting.batches], None)

    def _leave(self, tables: Iterable[str]) -> None:
        """Say that this consumer commits for them no more."""
        names = list(tables)
        self._presences.remove(names)
        try:
            for name in names:
                self._send(self._presence(name, is_leaving=True))
            self._sender().flush(1.0)
        except PenstockError as error:
            self._log.info("leaving_not_said", error=str(error))

    def _take_offer(self, served: dict[str, ServedTable], message: BetweenConsumers) -> None:
        one = served.get(message.table)
        if one is None or not isinstance(message, OfferedBatch):
            return
        try:
            is_accepted = self._is_signed(message, one)
        except PenstockError as error:
            self._give_table_up(one, error)
            return
        if not is_accepted:
            self._unsigned += 1
            if self._unsigned.bit_count() == 1:  # not a line for each of many
                self._log.warning("offers_not_signed", table=message.table, count=self._unsigned)
            return
        batch = batch_of(message, self._settings.lake.group)
        one.waiting = one.waiting.with_offer(batch, time.monotonic())

    def _give_table_up(self, one: ServedTable, error: PenstockError) -> None:
        """Leave this table alone; what else waits for it is answered when it is let go."""
        self._tell(one.table.name, error)
        one.until_s = 0.0

    def _is_signed(self, offer: OfferedBatch, one: ServedTable) -> bool:
        group = self._settings.lake.group
        if is_signed(offer, one.table.commit_key(), group):
            return True
        if time.monotonic() < one.key_due_s:
            return False
        one.key_due_s = time.monotonic() + _KEY_PERIOD_S
        one.table.forget_key()
        return is_signed(offer, one.table.commit_key(), group)

    def _period_s(self, one: ServedTable) -> float:
        is_in_store = not one.table.storage.is_local
        return commit_period_s(is_in_store=is_in_store, last_commit_s=one.commit_s)

    def _drop_late(self, name: str, one: ServedTable) -> None:
        """Their writers commit for themselves by now: committed twice, one would be refused."""
        late, one.waiting = one.waiting.without_late(time.monotonic())
        if late:
            self._answer(name, late, 0, frozenset())

    def _commit(self, name: str, one: ServedTable) -> None:
        # With the wait for the commits of other tables.
        since_s, began_s = one.waiting.since_s, time.monotonic()
        batches, one.waiting = one.waiting.taken(began_s)
        self._at_point("batches-gathered")
        self._commits += 1
        called = f"{self._folder}{self._writer}/together.{self._commits}"
        try:
            done = one.table.commit_together(batches, name=called)
        except PenstockError as error:
            # It is not known what became of them: their writers find out, and need not wait for it.
            self._give_table_up(one, error)
            self._answer(name, batches, 0, frozenset())
            return
        except BaseException:
            self._awaited.answer([batch.name for batch in batches], None)
            raise
        ended_s = time.monotonic()
        one.commit_s, took_s = ended_s - began_s, ended_s - since_s
        with self._lock:
            self._commit_s[name] = (self._commit_s.get(name, took_s) + took_s) / 2
        self._at_point("batches-committed")
        self._awaited.heard_version(name, done.version)
        self._answer(name, batches, done.version, done.committed)
        self._at_point("batches-answered")

    def _answer(
        self,
        table: str,
        batches: Iterable[BatchToCommit],
        version: int,
        committed: frozenset[str],
    ) -> None:
        names = [batch.name for batch in batches]
        self._awaited.answer([one for one in names if one in committed], version)
        self._awaited.answer([one for one in names if one not in committed], None)
        own = f"{self._folder}{self._writer}/"
        others = [one for one in names if not one.startswith(own)]
        for start in range(0, len(others), BATCHES_PER_ANSWER_MAX):
            some = others[start : start + BATCHES_PER_ANSWER_MAX]
            self._send(
                CommitAnswer(
                    table=table,
                    consumer_id=self._writer.consumer_id,
                    incarnation=self._writer.incarnation,
                    version=version,
                    committed=tuple(self._short(one) for one in some if one in committed),
                    refused=tuple(self._short(one) for one in some if one not in committed),
                )
            )

    def _short(self, batch: str) -> str:
        return batch.removeprefix(self._folder)

    def _say_presence(self, table: str) -> None:
        self._send(self._presence(table, is_leaving=False))

    def _presence(self, table: str, *, is_leaving: bool) -> CommitterPresence:
        with self._lock:
            commit_s = self._commit_s.get(table, 0.0)
        return CommitterPresence(
            table=table,
            consumer_id=self._writer.consumer_id,
            incarnation=self._writer.incarnation,
            commit_ms=round(commit_s * 1000),
            is_leaving=is_leaving,
        )

    def _send(self, message: BetweenConsumers) -> None:
        self._sender().send(message)
