"""Turns the errors of the Kafka client into errors of Penstock, each with what to do about it."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from penstock.errors import NotPermittedError, PenstockError, SettingsError, UnreachableError
from penstock.settings.sections import KafkaSettings

MISSING = frozenset(
    {
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
LEADER_MOVES = frozenset(
    {
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    }
)
_UNREACHABLE = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._WAIT_COORD,
    KafkaError._RESOLVE,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.BROKER_NOT_AVAILABLE,
}
_NOT_PERMITTED = {
    KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_SETTINGS = {KafkaError._INVALID_ARG, KafkaError._SSL}


class TopicMissingError(PenstockError):
    """The cluster has no such topic or partition, or not any more."""


class NoLeaderError(UnreachableError):
    """No broker leads the partition now, so nobody can read or write it."""


def unanswered(kafka: KafkaSettings, doing: str) -> UnreachableError:
    return UnreachableError(
        f"No Kafka broker answers at {kafka.bootstrap_servers} ({doing}).",
        remedy="Check kafka.bootstrap_servers and that a broker runs: `penstock doctor`.",
    )


def as_penstock_error(error: KafkaError, kafka: KafkaSettings, doing: str) -> PenstockError:
    code, explanation = error.code(), error.str()
    if code in MISSING:
        return TopicMissingError(
            f"Kafka has no such topic or partition ({doing}).",
            remedy="Check the topic's name and its number of partitions.",
        )
    if code in LEADER_MOVES:
        return NoLeaderError(
            f"No broker leads the partition now ({doing}): {explanation}.",
            remedy="It passes when an election ends; if it lasts, a broker is down.",
        )
    if code in _UNREACHABLE:
        return unanswered(kafka, doing)
    if code in _NOT_PERMITTED:
        return NotPermittedError(
            f"Kafka refuses: {explanation} ({doing}).",
            remedy="Give this principal the rights listed in docs/security.md.",
        )
    if code in _SETTINGS:
        return SettingsError(f"The Kafka client settings do not work: {explanation} ({doing}).")
    return PenstockError(f"Kafka failed: {explanation} ({doing}).")


@contextmanager
def kafka_failures(kafka: KafkaSettings, doing: str) -> Iterator[None]:
    """Raise errors of Penstock instead of those of the client.

    A process that stood still sees its own wait for an answer end before the client's.
    """
    try:
        yield
    except KafkaException as raised:
        error = raised.args[0]
        if not isinstance(error, KafkaError):
            raise PenstockError(f"Kafka failed: {raised} ({doing}).") from raised
        raise as_penstock_error(error, kafka, doing) from raised
    except TimeoutError as raised:
        raise unanswered(kafka, doing) from raised
