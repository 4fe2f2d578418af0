"""A broker that listens and lets nobody in: every command says what was refused and what to set."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kit.kafka.secured_broker import (
    PASSWORD,
    SecuredBroker,
    make_certificates,
    secured_broker,
)
from kit.program import penstock
from penstock.errors import (
    NotPermittedError,
    PenstockError,
    SettingsError,
    UnreachableError,
)
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.broker_questions import BrokerQuestions
from penstock.kafka_io.partition_reader import PartitionReader
from penstock.kafka_io.producer import RecordProducer
from penstock.model import TopicPartition
from penstock.settings.secret import Secret
from penstock.settings.sections import KafkaSettings

pytestmark = [pytest.mark.broker, pytest.mark.timeout(240)]
ANSWER_TIMEOUT_S = 120
LOGIN = {"security.protocol": "SASL_SSL", "sasl.username": "penstock"}
SCRAM = {**LOGIN, "sasl.mechanism": "SCRAM-SHA-512", "ssl.ca.location": "ca.pem"}
TLS = {"security.protocol": "SSL", "ssl.ca.location": "ca.pem"}
FOREIGN = {
    "ssl.certificate.location": "other/client.pem",
    "ssl.key.location": "other/client-key-and-certificate.pem",
}


@dataclass(frozen=True, slots=True)
class Mistake:
    """Settings for a listener that lets them not in, and what is said about them."""

    listener: str
    properties: dict[str, str]
    message: str
    remedy: str
    kind: type[PenstockError] = SettingsError
    password: str = PASSWORD
    files: tuple[str, ...] = field(
        default=("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
    )

    def settings(self, broker: SecuredBroker) -> KafkaSettings:
        properties = {
            name: str(broker.folder / value) if name in self.files else value
            for name, value in self.properties.items()
        }
        servers = broker.address.get(self.listener, broker.kafka.bootstrap_servers)
        has_user = "sasl.username" in properties
        return KafkaSettings(
            bootstrap_servers=servers,
            properties=properties,
            answer_timeout=f"{ANSWER_TIMEOUT_S}s",
            sasl_password=Secret(self.password) if has_user else None,
        )


MISTAKES = {
    "password": Mistake(
        "LOGIN",
        SCRAM,
        r"refused the login of user penstock \(SASL mechanism SCRAM-SHA-512\)",
        "kafka.sasl_password_file",
        NotPermittedError,
        password="wrong",  # noqa: S106 -- it is
    ),
    "mechanism": Mistake(
        "LOGIN",
        {**SCRAM, "sasl.mechanism": "SCRAM-SHA-256"},
        r"refused the login of user penstock \(SASL mechanism SCRAM-SHA-256\).*: "
        "it takes SCRAM-SHA-512",
        "Set sasl.mechanism",
        NotPermittedError,
    ),
    "authority": Mistake(
        "LOGIN",
        {**SCRAM, "ssl.ca.location": "other/ca.pem"},
        r"is not signed by what ssl.ca.location holds \(.*other/ca.pem\)",
        "authority of this Kafka",
    ),
    "no authority": Mistake(
        "TLS",
        {"security.protocol": "SSL"},
        "is not signed by an authority that this machine trusts",
        "Set ssl.ca.location",
    ),
    "nothing": Mistake(
        "LOGIN", {}, "speaks TLS, and security.protocol is PLAINTEXT", "SSL, or SASL_SSL"
    ),
    "no login": Mistake("LOGIN", TLS, r"asks for a login \(SASL\)", "SASL_SSL, with"),
    "no login there": Mistake("TLS", SCRAM, "takes no login here", "Set security.protocol to SSL"),
    "no certificate": Mistake(
        "MUTUAL",
        TLS,
        "asks for a client certificate",
        "ssl.certificate.location and ssl.key.location",
    ),
    "foreign certificate": Mistake(
        "MUTUAL",
        {**TLS, **FOREIGN},
        r"does not accept the client certificate of ssl.certificate.location \(.*client.pem\)",
        "signed",
        NotPermittedError,
    ),
    "no TLS there": Mistake(
        "PLAIN", TLS, "does not answer with TLS", "Check the port", UnreachableError
    ),
}


@pytest.fixture(scope="module")
def broker(broker_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    folder = tmp_path_factory.mktemp("secured")
    (folder / "other").mkdir()
    make_certificates(folder / "other")
    with secured_broker(folder, user="penstock") as running:
        yield running


@pytest.mark.parametrize("name", MISTAKES)
def test_every_client_says_what_was_refused_long_before_its_time_out(
    broker: SecuredBroker, name: str
) -> None:
    """Which setting, what it is, what to set; the wait for an answer is not waited to its end."""
    mistake = MISTAKES[name]
    kafka = mistake.settings(broker)
    place = TopicPartition("orders", 0)
    questions = (
        lambda: Administration(kafka).cluster(),
        lambda: Administration(kafka).topics(["orders"]),
        lambda: PartitionReader(kafka).log_range(place),
        lambda: RecordProducer(kafka).wait_until_known([place]),
        lambda: BrokerQuestions(kafka),
    )
    began_s = time.monotonic()
    with ThreadPoolExecutor(len(questions)) as threads:
        answers = [threads.submit(ask) for ask in questions]
        for answer in answers:
            with pytest.raises(mistake.kind, match=mistake.message) as refused:
                answer.result()
            assert mistake.remedy in refused.value.remedy
            assert type(refused.value) is mistake.kind
    assert time.monotonic() - began_s < ANSWER_TIMEOUT_S / 2


def test_the_program_says_it_too(broker: SecuredBroker, tmp_path: Path) -> None:
    """Doctor on its line `broker`, below a line `ports` that is right; other commands as errors."""
    mistake = MISTAKES["password"]
    kafka = mistake.settings(broker)
    given = {
        "PENSTOCK_KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "PENSTOCK_KAFKA__PROPERTIES": json.dumps(kafka.properties),
        "PENSTOCK_KAFKA__SASL_PASSWORD": mistake.password,
    }
    done = penstock("doctor", "-o", "json", environment=given, cwd=tmp_path)
    checks = {one["check"]: one for one in json.loads(done.stdout)}
    assert checks["ports"]["ok"]
    assert not checks["broker"]["ok"]
    assert mistake.remedy in checks["broker"]["remedy"]
    assert done.returncode == mistake.kind.exit_code
    done = penstock("speeds", "--once", environment=given, cwd=tmp_path)
    assert done.returncode == mistake.kind.exit_code, done.stderr
    assert mistake.remedy in " ".join(done.stderr.split())
