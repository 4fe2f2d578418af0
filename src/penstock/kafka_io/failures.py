"""Turns what a Kafka client says went wrong into our own errors, with what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from penstock.errors import NotPermittedError, PenstockError, SettingsError, UnreachableError
from penstock.settings.sections import KafkaSettings

_UNREACHABLE = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
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


def as_penstock_error(error: KafkaError, kafka: KafkaSettings, doing: str) -> PenstockError:
    code, said = error.code(), error.str()
    if code in _UNREACHABLE:
        return UnreachableError(
            f"No Kafka broker answers at {kafka.bootstrap_servers} ({doing}).",
            remedy="Check kafka.bootstrap_servers and that a broker runs: `penstock doctor`.",
        )
    if code in _NOT_PERMITTED:
        return NotPermittedError(
            f"Kafka refuses: {said} ({doing}).",
            remedy="Give this principal the rights listed in docs/security.md.",
        )
    if code in _SETTINGS:
        return SettingsError(f"The Kafka client settings do not work: {said} ({doing}).")
    return PenstockError(f"Kafka failed: {said} ({doing}).")


@contextmanager
def kafka_failures(kafka: KafkaSettings, doing: str) -> Iterator[None]:
    """Whatever the client raises inside comes out as one of our errors."""
    try:
        yield
    except KafkaException as raised:
        error = raised.args[0]
        if not isinstance(error, KafkaError):
            raise PenstockError(f"Kafka failed: {raised} ({doing}).") from raised
        raise as_penstock_error(error, kafka, doing) from raised
