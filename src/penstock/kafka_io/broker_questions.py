"""Asks all brokers at once about the logs they hold, and never waits for a silent one.

This uses kafka-python's admin client: the other library cannot ask for log sizes, and these
connections carry several questions at a time. A question stays open until it is answered or
`kafka.answer_timeout` passes. A broker with an open question is not asked the same again, so that a
slow broker is not flooded and does not hold up the others. When no broker has answered for a while,
a new connection is made from the bootstrap addresses.
"""

import base64
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from kafka.admin import KafkaAdminClient
from kafka.errors import (
    AuthorizationError,
    BrokerResponseError,
    IncompatibleBrokerVersion,
    KafkaConfigurationError,
    KafkaError,
    SaslAuthenticationFailedError,
)
from kafka.protocol.admin import DescribeLogDirsRequest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from penstock.errors import NotPermittedError, PenstockError, SettingsError, UnreachableError
from penstock.kafka_io.administration import require_answer
from penstock.kafka_io.client_properties import kafka_python_properties
from penstock.kafka_io.record_batches import bytes_and_records
from penstock.model.broker_logs import BrokerLogSizes, LogName, LogOffsets, LogPlace
from penstock.settings.sections import KafkaSettings

_NONE, _UNKNOWN_TOPIC, _NO_LEADER, _NOT_LEADER, _CLUSTER_REFUSED = 0, 3, 5, 6, 31
_STALE_LAYOUT = {_UNKNOWN_TOPIC, _NO_LEADER, _NOT_LEADER}
_LATEST, _EARLIEST = -1, -2
# From this version on, an error code says that log sizes are refused; before it, an empty answer.
_REFUSAL_HAS_A_CODE_SINCE = 3
# The last version that names topics by name: ids would have to be looked up.
_FETCH_VERSION = 12
# The last version without tagged fields: half the work to encode, and it has all that is needed.
_OFFSETS_VERSION = 5
_SAMPLE_BYTES_EACH = 64 * 1024
_SAMPLE_BYTES_ALL = 8 * 1024 * 1024
# After this much silence of all brokers the connection is made again: their addresses may all have
# changed. Each attempt is short, because it holds up a round.
_NEW_CONNECTION_AFTER_S = 15.0
_NEW_CONNECTION_TIMEOUT_S = 2.0

# The broker id of a question that any broker can answer.
ANY_BROKER = -1

Kind = Literal["layout", "sizes", "end", "start", "samples"]
Layout = Mapping[LogName, LogPlace]


@dataclass(frozen=True, slots=True)
class SampleOf:
    """A log of which to fetch some records, from an offset near its end."""

    name: LogName
    from_offset: int


@dataclass(frozen=True, slots=True)
class Questions:
    """What to ask in one round; partitions by the broker that leads them."""

    layout: bool = False
    sizes: bool = False
    offsets_by_leader: Mapping[int, tuple[LogName, ...]] = field(default_factory=dict)
    samples_by_leader: Mapping[int, Iterable[SampleOf]] = field(default_factory=dict)


@dataclass(slots=True)
class Answers:
    """What was answered since the last round, perhaps to earlier questions."""

    layout: Layout | None = None
    sizes: list[BrokerLogSizes] = field(default_factory=list)
    offsets: list[LogOffsets] = field(default_factory=list)
    bytes_per_record: dict[LogName, float] = field(default_factory=dict)
    sizes_refused: str | None = None
    layout_is_stale: bool = False
    silent_brokers: set[int] = field(default_factory=set)
    failures: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _OffsetRequests:
    """Encoded requests for the offsets of `names`."""

    names: tuple[LogName, ...]
    end: Any
    start: Any


class BrokerQuestions:
    """One connection to each broker. Made after any fork."""

    def __init__(self, kafka: KafkaSettings, *, clock: Callable[[], float] = time.monotonic):
        self._kafka = kafka
        self._clock = clock
        self._open: dict[tuple[Kind, int], Any] = {}
        self._requests: dict[int, _OffsetRequests] = {}
        self._answered = threading.Event()
        self._heard_at_s = clock()
        # The library logs every failed attempt; the monitor logs an outage once.
        logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)
        require_answer(kafka)
        self._client: KafkaAdminClient | None = self._connect(kafka.answer_timeout)

    def _connect(self, timeout_s: float) -> KafkaAdminClient:
        properties = kafka_python_properties(self._kafka)
        properties["bootstrap_timeout_ms"] = int(timeout_s * 1000)
        try:
            return KafkaAdminClient(**properties)
        except (SaslAuthenticationFailedError, AuthorizationError) as error:
            raise NotPermittedError(
                f"Kafka refuses: {error} (connecting).",
                remedy="Give this principal the rights listed in docs/security.md.",
            ) from error
        except (KafkaConfigurationError, OSError) as error:
            raise SettingsError(f"The Kafka client settings do not work: {error}.") from error
        except KafkaError as error:
            raise UnreachableError(
                f"No Kafka broker answers at {self._kafka.bootstrap_servers} (connecting).",
                remedy="Check kafka.bootstrap_servers and that a broker runs: `penstock doctor`.",
            ) from error

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
        self._open.clear()

    @property
    def brokers(self) -> tuple[int, ...]:
        if self._client is None:
            return ()
        return tuple(sorted(one.node_id for one in self._client._manager.cluster.brokers()))

    def ask(self, questions: Questions, *, wait_s: float) -> Answers:
        """Ask, wait at most `wait_s`, and return what has been answered by then."""
        answers = Answers()
        try:
            self._renew_connection()
        except UnreachableError:
            answers.silent_brokers.add(ANY_BROKER)
            return answers
        self._send_all(questions)
        deadline_s = self._clock() + wait_s
        while any(not future.is_done for future in self._open.values()):
            left_s = deadline_s - self._clock()
            if left_s <= 0 or not self._answered.wait(left_s):
                break
            self._answered.clear()
        self._collect(answers)
        return answers

    def _renew_connection(self) -> None:
        """Connect to the bootstrap addresses again when no broker has answered for long."""
        if self._client is not None and self._clock() - self._heard_at_s < _NEW_CONNECTION_AFTER_S:
            return
        self.close()  # if connecting fails, the next round tries again
        self._heard_at_s = self._clock()
        self._client = self._connect(min(_NEW_CONNECTION_TIMEOUT_S, self._kafka.answer_timeout))

    def _send_all(self, questions: Questions) -> None:
        if questions.layout:
            request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
            self._send("layout", None, request)
        if questions.sizes:
            for broker in self.brokers:
                self._send("sizes", broker, DescribeLogDirsRequest(topics=None))
        for broker, names in sorted(questions.offsets_by_leader.items()):
            end, start = self._offsets_requests(broker, names)
            self._send("end", broker, end)
            self._send("start", broker, start)
        for broker, samples in sorted(questions.samples_by_leader.items()):
            self._send("samples", broker, _samples_request(tuple(samples)))

    def _offsets_requests(self, broker: int, names: tuple[LogName, ...]) -> tuple[Any, Any]:
        """For the end and the start; kept between rounds, as encoding them is most of the work."""
        requests = self._requests.get(broker)
        if requests is None or requests.names is not names:
            requests = _OffsetRequests(
                names, _offsets_request(names, _LATEST), _offsets_request(names, _EARLIEST)
            )
            self._requests[broker] = requests
        return requests.end, requests.start

    def _send(self, kind: Kind, broker: int | None, request: Any) -> None:
        slot = (kind, ANY_BROKER if broker is None else broker)
        if slot in self._open or self._client is None:
            return
        manager = self._client._manager

        async def asking() -> tuple[Any, float]:
            asked_at_s = self._clock()
            answer = await manager.send(request, node_id=broker)
            return answer, (asked_at_s + self._clock()) / 2

        future = manager.call_soon(asking)
        future.add_both(lambda _: self._answered.set())
        self._open[slot] = future

    def _collect(self, answers: Answers) -> None:
        starts: dict[int, dict[LogName, int]] = {}
        ends: dict[int, tuple[float, dict[LogName, int]]] = {}
        for (kind, broker), future in sorted(self._open.items(), key=lambda item: item[0]):
            if not future.is_done:
                answers.silent_brokers.add(broker)
                continue
            del self._open[kind, broker]
            failure = future.exception
            if failure is not None:
                self._failed(kind, broker, failure, answers)
                continue
            answer, taken_at_s = future.value
            self._heard_at_s = self._clock()
            if kind == "layout":
                answers.layout = _layout(answer)
            elif kind == "sizes":
                _take_sizes(broker, taken_at_s, answer, answers)
            elif kind == "end":
                ends[broker] = (taken_at_s, _offsets(answer, answers))
            elif kind == "start":
                starts[broker] = _offsets(answer, answers)
            else:
                _take_samples(answer, answers)
        for broker, (taken_at_s, end) in ends.items():
            answers.offsets.append(LogOffsets(broker, taken_at_s, starts.get(broker, {}), end))

    def _failed(self, kind: Kind, broker: int, failure: Exception, answers: Answers) -> None:
        if kind == "sizes" and isinstance(failure, (IncompatibleBrokerVersion, AuthorizationError)):
            answers.sizes_refused = type(failure).__name__
            return
        if not isinstance(failure, (KafkaError, BrokerResponseError, OSError)):
            raise PenstockError(f"Kafka failed: {failure!r} (asking for {kind}).") from failure
        answers.layout_is_stale = True
        answers.silent_brokers.add(broker)


def _by_topic(names: Iterable[LogName]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in names:
        topics.setdefault(topic, []).append(partition)
    return topics


def _offsets_request(names: tuple[LogName, ...], timestamp: int) -> Any:
    topic_row = ListOffsetsRequest.ListOffsetsTopic
    row = topic_row.ListOffsetsPartition
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
        topics=[
            topic_row(
                name=topic,
                partitions=[
                    row(partition_index=one, current_leader_epoch=-1, timestamp=timestamp)
                    for one in partitions
                ],
            )
            for topic, partitions in _by_topic(names).items()
        ],
        max_version=_OFFSETS_VERSION,
    )


def _samples_request(samples: tuple[SampleOf, ...]) -> Any:
    topic_row = FetchRequest.FetchTopic
    row = topic_row.FetchPartition
    from_offset = {sample.name: sample.from_offset for sample in samples}
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=_SAMPLE_BYTES_ALL,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[
            topic_row(
                topic=topic,
                partitions=[
                    row(
                        partition=one,
                        current_leader_epoch=-1,
                        fetch_offset=from_offset[topic, one],
                        last_fetched_epoch=-1,
                        log_start_offset=-1,
                        partition_max_bytes=_SAMPLE_BYTES_EACH,
                    )
                    for one in partitions
                ],
            )
            for topic, partitions in _by_topic(from_offset).items()
        ],
        forgotten_topics_data=[],
        rack_id="",
        max_version=_FETCH_VERSION,
    )


def _layout(answer: Any) -> dict[LogName, LogPlace]:
    places = {}
    for topic in answer.topics:
        if topic.error_code != _NONE:
            continue
        topic_id = _id_text(topic.topic_id)
        for one in topic.partitions:
            place = LogPlace(topic_id, one.leader_id, bool(topic.is_internal))
            places[topic.name, one.partition_index] = place
    return places


def _id_text(topic_id: UUID | None) -> str:
    """The id as Kafka's own tools print it; empty from brokers too old to have ids."""
    if topic_id is None or topic_id.int == 0:
        return ""
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def _take_sizes(broker: int, taken_at_s: float, answer: Any, answers: Answers) -> None:
    if answer.API_VERSION < _REFUSAL_HAS_A_CODE_SINCE and not answer.results:
        answers.sizes_refused = "an empty answer"
        return
    if answer.API_VERSION >= _REFUSAL_HAS_A_CODE_SINCE and answer.error_code != _NONE:
        if answer.error_code == _CLUSTER_REFUSED:
            answers.sizes_refused = "ClusterAuthorizationFailed"
        else:
            answers.failures[f"sizes from {broker}"] = f"error code {answer.error_code}"
        return
    sizes = {
        (topic.name, one.partition_index): one.partition_size
        for directory in answer.results
        if directory.error_code == _NONE
        for topic in directory.topics
        for one in topic.partitions
        if not one.is_future_key  # a copy that is moving to another disk of the broker
    }
    answers.sizes.append(BrokerLogSizes(broker, taken_at_s, sizes))


def _offsets(answer: Any, answers: Answers) -> dict[LogName, int]:
    found = {}
    for topic in answer.topics:
        name = topic.name
        for one in topic.partitions:
            if one.error_code == _NONE:
                if one.offset >= 0:
                    found[name, one.partition_index] = one.offset
            elif one.error_code in _STALE_LAYOUT:
                answers.layout_is_stale = True
            else:
                answers.failures[f"offsets of {name}"] = f"error code {one.error_code}"
    return found


def _take_samples(answer: Any, answers: Answers) -> None:
    for topic in answer.responses:
        for one in topic.partitions:
            if one.error_code != _NONE:
                answers.failures[f"records of {topic.topic}"] = f"error code {one.error_code}"
                continue
            total_bytes, records = bytes_and_records(one.records or b"")
            if records:
                name = (topic.topic, one.partition_index)
                answers.bytes_per_record[name] = total_bytes / records
