"""A real broker with three more ways in: TLS, TLS with client certificates, and SASL over TLS."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kit.free_ports import free_ports
from kit.kafka.guarded_broker import HOST
from penstock.laboratory.broker import EmbeddedKafka
from penstock.laboratory.broker.properties import BrokerPlan

PASSWORD = "a password of the test"  # noqa: S105 -- the broker of the test knows no other
LISTENERS = {"TLS": "SSL", "MUTUAL": "SSL", "LOGIN": "SASL_SSL"}


@dataclass(frozen=True, slots=True)
class SecuredBroker:
    """`address` by listener; `folder` has the files that the documents name in /etc/penstock."""

    kafka: EmbeddedKafka
    address: dict[str, str]
    folder: Path


@contextmanager
def secured_broker(folder: Path, user: str, password: str = PASSWORD) -> Iterator[SecuredBroker]:
    make_certificates(folder)
    (folder / "kafka-password").write_text(password, encoding="utf-8")
    port, controller_port, *others = free_ports(2 + len(LISTENERS))
    address = {name: f"{HOST}:{own}" for name, own in zip(LISTENERS, others, strict=True)}
    listeners = ",".join(
        [f"CLIENTS://{HOST}:{port}", *(f"{name}://{where}" for name, where in address.items())]
    )
    protocols = ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items())
    properties = {
        "listeners": f"{listeners},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": listeners,
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "listener.security.protocol.map": f"CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT,{protocols}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker-key-and-certificate.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.login.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
    }
    plan = BrokerPlan(properties=properties)
    with EmbeddedKafka(plan, data_directory=folder / "data", port=port) as kafka:
        _add_user(kafka.bootstrap_servers, user, password)
        yield SecuredBroker(kafka, address, folder)


def _add_user(servers: str, user: str, password: str) -> None:
    credentials = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion(user, credentials, password.encode())
    client = AdminClient({"bootstrap.servers": servers})
    for future in client.alter_user_scram_credentials([change]).values():
        future.result(timeout=60)


def make_certificates(folder: Path) -> None:
    """An authority, and a key and a certificate of it for the broker and for a client."""
    if shutil.which("openssl") is None:
        pytest.skip("TLS is not tested: there is no openssl on this machine")
    _openssl(folder, "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority", "ca")
    for name in ("broker", "client"):
        request = f"req -newkey rsa:2048 -nodes -subj /CN={name}"
        _openssl(folder, f"{request} -keyout {name}.key -out {name}.csr")
        (folder / "names").write_text(f"subjectAltName=IP:{HOST},DNS:localhost", encoding="utf-8")
        signed = f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2"
        _openssl(folder, f"{signed} -extfile names -out {name}.pem")
        both = [(folder / file).read_text() for file in (f"{name}.key", f"{name}.pem")]
        (folder / f"{name}-key-and-certificate.pem").write_text("".join(both), encoding="utf-8")


def _openssl(folder: Path, arguments: str, name: str | None = None) -> None:
    files = [] if name is None else ["-keyout", f"{name}.key", "-out", f"{name}.pem"]
    command = ["openssl", *arguments.split(), *files]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
