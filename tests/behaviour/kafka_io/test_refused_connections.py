"""What librdkafka tells of a broker that lets nobody in, as it was told by real brokers."""

import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kit.kafka.secured_broker import make_certificates
from penstock.errors import NotPermittedError, PenstockError, SettingsError, UnreachableError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.listener_greeting import asked_refusal
from penstock.kafka_io.refused_connections import Refusal, refusal_in, refused
from penstock.kafka_io.told_errors import ToldErrors
from penstock.settings.sections import KafkaSettings

AT = "sasl_ssl://127.0.0.1:9094/bootstrap"
WRONG_PASSWORD = (
    f"{AT}: SASL authentication error: Authentication failed during authentication due to invalid "
    "credentials with SASL mechanism SCRAM-SHA-512 (after 364ms in state AUTH_REQ)"
)
UNKNOWN_AUTHORITY = (
    f"{AT}: SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: broker "
    "certificate could not be verified, verify that ssl.ca.location is correctly configured or "
    "root CA certificates are installed (after 9ms in state SSL_HANDSHAKE)"
)
OTHER_MECHANISM = (
    f"{AT}: SASL SCRAM-SHA-256 mechanism handshake failed: Broker: Unsupported SASL mechanism: "
    "broker's supported mechanisms: SCRAM-SHA-512 (after 303ms in state AUTH_HANDSHAKE)"
)
NO_LOGIN_THERE = (
    f"{AT}: SASL SCRAM-SHA-512 mechanism handshake failed: Broker: Request not valid in current "
    "SASL state: broker's supported mechanisms:  (after 0ms in state AUTH_HANDSHAKE)"
)
CERTIFICATE = "{}: Receive failed: error:0A000412:SSL routines::{}: SSL alert number {}"
DOWN = "1/1 brokers are down"
AWAY = "127.0.0.1:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: Connection refused"
LOGIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.username": "penstock",
}


@pytest.mark.parametrize(
    ("told", "refusal"),
    [
        (WRONG_PASSWORD, Refusal.LOGIN),
        (OTHER_MECHANISM, Refusal.MECHANISM),
        (NO_LOGIN_THERE, Refusal.LOGIN_NOT_TAKEN),
        (UNKNOWN_AUTHORITY, Refusal.AUTHORITY),
        (
            CERTIFICATE.format(AT, "ssl/tls alert bad certificate", 42),
            Refusal.CLIENT_CERTIFICATE,
        ),
        (
            CERTIFICATE.format(AT, "tlsv13 alert certificate required", 116),
            Refusal.CLIENT_CERTIFICATE,
        ),
        (f"{AT}: Disconnected: connecting to a PLAINTEXT broker listener? (x)", Refusal.TLS),
        (f"{AT}: might be incorrect (connecting to a SSL listener?)", Refusal.PLAIN),
        (AWAY, None),
    ],
)
def test_the_texts_say_what_was_refused(told: str, refusal: Refusal | None) -> None:
    """Beside what is told again and again, and in any order."""
    assert refusal_in([DOWN, told, DOWN]) is refusal
    assert refusal_in([told, AWAY]) is refusal


@pytest.mark.parametrize(
    "step",
    [
        "SASL authentication error: SaslAuthenticateRequest failed",
        "SASL SCRAM-SHA-512 mechanism handshake failed",
    ],
)
def test_a_broker_that_ends_during_a_login_refuses_nothing(step: str) -> None:
    """The same step fails, with a reason of the client: it passes when the broker is back."""
    assert refusal_in([f"{AT}: {step}: Local: Broker transport failure (after 3ms)"]) is None


def test_nothing_told_is_nothing_refused() -> None:
    """Brokers that are away refuse nobody."""
    assert refusal_in([]) is None
    assert refusal_in([DOWN, AWAY]) is None


@pytest.mark.parametrize(
    ("refusal", "kind", "said"),
    [
        (Refusal.MECHANISM, NotPermittedError, "penstock (SASL mechanism SCRAM-SHA-256)"),
        (Refusal.LOGIN, NotPermittedError, "kafka.sasl_password_file"),
        (Refusal.LOGIN_NOT_TAKEN, SettingsError, "Set security.protocol to SSL"),
        (Refusal.AUTHORITY, SettingsError, "Set ssl.ca.location"),
        (Refusal.CLIENT_CERTIFICATE, SettingsError, "ssl.certificate.location and ssl.key"),
        (Refusal.TLS, UnreachableError, "Check the port"),
        (Refusal.PLAIN, SettingsError, "speaks TLS"),
        (Refusal.NO_LOGIN, SettingsError, "asks for a login"),
    ],
)
def test_each_has_its_remedy_and_exit_code(
    refusal: Refusal, kind: type[PenstockError], said: str
) -> None:
    """What the operator sets is a settings error; what the broker refuses is not permitted."""
    error = refused(refusal, KafkaSettings(properties=LOGIN), "asking", [OTHER_MECHANISM])
    assert type(error) is kind
    assert said in str(error)
    assert error.remedy


def silent(_: float) -> Any:
    raise KafkaException(KafkaError(KafkaError._TRANSPORT))


@pytest.mark.parametrize(
    ("look", "answer_timeout", "waited_s"),
    [(2, "10s", [1.0, 2.0]), (4, "40s", [1.0, 2.0, 4.0, 8.0])],
)
def test_a_refusal_is_told_before_the_time_is_over(
    look: int, answer_timeout: str, waited_s: list[float]
) -> None:
    """Asked for some moments, not for the whole time; the reason came with the last look."""
    kafka = KafkaSettings(properties=LOGIN, answer_timeout=answer_timeout)
    told, waits = ToldErrors(kafka), list[float]()

    def ask(wait_s: float) -> Any:
        waits.append(wait_s)
        silent(wait_s)

    def poll() -> None:
        if len(waits) == look:
            told.properties["error_cb"](_Told(WRONG_PASSWORD))

    with pytest.raises(NotPermittedError, match="refused the login of user penstock"):
        told.first_answer(ask, poll, "asking")
    assert waits == waited_s


def test_of_many_questions_one_waits_for_the_refusal() -> None:
    """It is raised again for the others; a client that was answered meanwhile forgets it."""
    told = ToldErrors(KafkaSettings(properties=LOGIN))
    told.raise_known()
    told.properties["error_cb"](_Told(WRONG_PASSWORD))
    with pytest.raises(NotPermittedError):
        told.first_answer(silent, lambda: None, "asking")
    with pytest.raises(NotPermittedError, match="refused the login"):
        told.raise_known()
    told.first_answer(lambda _: "answer", lambda: None, "asking")
    told.raise_known()


class _Told:
    """As the client's own, which only the client can give a text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def str(self) -> str:
        return self._text


def test_a_client_that_was_let_in_once_is_not_told_that_its_settings_are_wrong() -> None:
    """What comes later passes: a broker that ends also breaks off what was begun."""
    told = ToldErrors(KafkaSettings(properties=LOGIN))
    assert told.first_answer(lambda _: "answer", lambda: None, "asking") == "answer"
    told.properties["error_cb"](_Told(WRONG_PASSWORD))
    with pytest.raises(KafkaException):
        told.first_answer(silent, lambda: None, "asking")


def listening(answer: Callable[[socket.socket], None]) -> str:
    """The address of a server for one test; its thread ends with the process."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            with server.accept()[0] as wire:
                answer(wire)

    threading.Thread(target=serve, daemon=True).start()
    return f"127.0.0.1:{server.getsockname()[1]}"


def test_a_listener_that_only_ends_connections_is_not_believed_to_speak_tls() -> None:
    """As a broker does that is about to end: it is unreachable, and that passes."""
    kafka = KafkaSettings(
        bootstrap_servers=listening(lambda wire: wire.close()), answer_timeout="1s"
    )
    assert asked_refusal(kafka) is None
    with pytest.raises(UnreachableError, match="No Kafka broker answers"):
        Administration(kafka).cluster()


def test_a_listener_with_tls_is_known_by_its_answer(tmp_path: Path) -> None:
    """Without any setting: which one is missing is said."""
    make_certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "broker.pem", tmp_path / "broker.key")

    def greet(wire: socket.socket) -> None:
        try:
            context.wrap_socket(wire, server_side=True).close()
        except OSError:
            return

    kafka = KafkaSettings(bootstrap_servers=listening(greet), answer_timeout="1s")
    with pytest.raises(SettingsError, match=r"speaks TLS, and security.protocol is PLAINTEXT"):
        Administration(kafka).cluster()
