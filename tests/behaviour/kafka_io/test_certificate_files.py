"""Files of certificates and keys are looked at before a client or Spark is started with them."""

from pathlib import Path

import pytest

from kit.program import invoked
from penstock.errors import SettingsError
from penstock.kafka_io.certificate_files import require_certificates
from penstock.kafka_io.client_properties import (
    java_properties,
    kafka_python_properties,
    librdkafka_properties,
)
from penstock.settings.sections import KafkaSettings

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"
OLD_KEY = KEY.replace("PRIVATE", "RSA PRIVATE")
LOCKED_KEY = KEY.replace("PRIVATE", "ENCRYPTED PRIVATE")


def settings_with(folder: Path, **texts: str) -> KafkaSettings:
    """With a good file for each setting, but for those given: `ca`, `certificate` and `key`."""
    good = {"ca": CERTIFICATE, "certificate": CERTIFICATE, "key": KEY + CERTIFICATE}
    properties = {"security.protocol": "SSL"}
    for name, text in {**good, **texts}.items():
        file = folder / f"{name}.pem"
        file.write_text(text, encoding="utf-8")
        properties[f"ssl.{name}.location"] = str(file)
    return KafkaSettings(properties=properties)


def test_files_that_have_all_blocks_are_taken(tmp_path: Path) -> None:
    """Whatever else stands in them, and in any order."""
    require_certificates(settings_with(tmp_path))
    text = f"issued to: client\n{CERTIFICATE}{KEY}"
    require_certificates(settings_with(tmp_path, key=text, ca=CERTIFICATE * 3))


@pytest.mark.parametrize(
    ("name", "text", "fault", "remedy"),
    [
        ("key", KEY, "has no CERTIFICATE, only PRIVATE KEY", "Add the CERTIFICATE"),
        ("key", CERTIFICATE, "has no PRIVATE KEY, only CERTIFICATE", "Add the PRIVATE KEY"),
        ("key", OLD_KEY + CERTIFICATE, "in the form RSA PRIVATE KEY", "openssl pkcs8 -topk8"),
        ("key", LOCKED_KEY + CERTIFICATE, "no password is set", "kafka.ssl_key_password_file"),
        ("certificate", KEY, "has no CERTIFICATE, only PRIVATE KEY", "Name the file"),
        ("ca", KEY, "has no CERTIFICATE, only PRIVATE KEY", "Name the file"),
        ("ca", "\x30\x82 binary", "is no PEM file", "BEGIN CERTIFICATE"),
        ("ca", "", "is no PEM file", "BEGIN CERTIFICATE"),
    ],
)
def test_a_file_that_lacks_something_is_named_with_it(
    tmp_path: Path, name: str, text: str, fault: str, remedy: str
) -> None:
    """The setting, the file and what is missing; no client is made of such settings."""
    kafka = settings_with(tmp_path, **{name: text})
    for make in (librdkafka_properties, java_properties, kafka_python_properties):
        with pytest.raises(SettingsError, match=fault) as refused:
            make(kafka)
        assert refused.value.message.startswith(f"ssl.{name}.location: {tmp_path / name}.pem ")
        assert remedy in refused.value.remedy


def test_a_file_that_is_not_there_or_no_file_is_told(tmp_path: Path) -> None:
    """A folder cannot be read as one."""
    for place, fault in (
        (tmp_path / "nothing.pem", "does not exist"),
        (tmp_path, "cannot be read"),
    ):
        properties = {"security.protocol": "SSL", "ssl.ca.location": str(place)}
        with pytest.raises(SettingsError, match=f"ssl.ca.location: {place} {fault}"):
            require_certificates(KafkaSettings(properties=properties))


@pytest.mark.parametrize("command", [("topics", "check"), ("speeds", "--once"), ("doctor",)])
def test_commands_refuse_a_missing_authority_before_they_connect(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a settings error that names the file as it was written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    properties = "{security.protocol: SSL, ssl.ca.location: cert/nothing.pem}"
    root = f"lake.root={tmp_path / 'lake'}"
    done = invoked(*command, "--set", f"kafka.properties={properties}", "--set", root)
    assert "ssl.ca.location: cert/nothing.pem does not exist" in f"{done.output}{done.exception}"
    if command != ("doctor",):  # it tells first that nothing listens
        assert isinstance(done.exception, SettingsError)
