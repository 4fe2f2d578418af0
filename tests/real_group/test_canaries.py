"""No secret of a real group leaks: neither into logs and files nor into topics and arguments.

Canaries are planted wherever a secret can enter. The group carries records, a transformation fails,
a request sets a variable, a password is wrong. Then everything that the group wrote is searched.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from kit.canaries import CANARIES, REQUESTED, found_below, found_in, found_in_arguments
from kit.kafka.secured_broker import SecuredBroker, secured_broker
from kit.lake.lake import produce
from kit.program import penstock
from penstock.kafka_io.administration import Administration
from penstock.settings import load_settings
from penstock.verification import carried_so_far

USER = "penny"
# Spark's server and two trials come before the first record: minutes on a busy machine.
BUSY_S = 300.0
ENCRYPTING = "openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES -passout env:PASSWORD"
FAILS = '''"""Fails at a bad record, in Spark or in its Python workers."""

from pyspark.sql import functions


def in_spark(records):
    text = "CASE WHEN CAST(value AS STRING) = 'bad' THEN raise_error('no good') ELSE value END"
    return records.withColumn("value", functions.expr(f"CAST({text} AS STRING)"))


def in_workers(records):
    def fail(value):
        if value == "bad":
            raise RuntimeError("no good")
        return value

    text = functions.col("value").cast("string")
    return records.withColumn("value", functions.udf(fail, "string")(text))
'''


def settings_text(broker: SecuredBroker, folder: Path) -> str:
    files = broker.folder
    return json.dumps(
        {
            "kafka": {
                "bootstrap_servers": broker.address["LOGIN"],
                "properties": {
                    "security.protocol": "SASL_SSL",
                    "sasl.mechanism": "SCRAM-SHA-512",
                    "sasl.username": USER,
                    "ssl.ca.location": str(files / "ca.pem"),
                    "ssl.certificate.location": str(files / "client.pem"),
                    "ssl.key.location": str(files / "client-key-and-certificate.pem"),
                },
            },
            "monitor": {"include": ["orders", "one", "two"]},
            "lake": {
                "root": str(folder / "lake"),
                "tables": {
                    "one": {"transformation": "failing:in_spark"},
                    "two": {"transformation": "failing:in_workers"},
                },
            },
            "controller": {"directory": str(folder / "group"), "consumers_max": 1},
            "log": {"level": "debug", "format": "json"},
        }
    )


def encrypt_key(secrets: Path) -> str:
    """The client's key, encrypted with its own canary; the file in clear is removed.

    Of the ways to encrypt a key, Java 17, OpenSSL and Python all read this one.
    """
    password = CANARIES["PENSTOCK_KAFKA__SSL_KEY_PASSWORD"]
    subprocess.run(
        [*ENCRYPTING.split(), "-in", "client.key", "-out", "encrypted.key"],
        cwd=secrets,
        env={**os.environ, "PASSWORD": password},
        check=True,
        capture_output=True,
    )
    key = (secrets / "encrypted.key").read_text(encoding="utf-8")
    both = key + (secrets / "client.pem").read_text(encoding="utf-8")
    (secrets / "client-key-and-certificate.pem").write_text(both, encoding="utf-8")
    for name in ("client.key", "encrypted.key"):
        (secrets / name).unlink()
    return key


@contextmanager
def running_group(folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    with (folder / "up.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock", "up"],
            cwd=folder,
            stdout=log,
            stderr=log,
            env={**os.environ, **environment},
        )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(BUSY_S)


def until(condition: Callable[[], bool], what: str, folder: Path) -> None:
    """Wait for it; the failure shows what `up` said."""
    deadline_s = time.monotonic() + BUSY_S
    while not condition():
        assert time.monotonic() < deadline_s, f"{what}\n{(folder / 'up.log').read_text()[-2000:]}"
        time.sleep(0.5)


def spoken(folder: Path, environment: Mapping[str, str]) -> str:
    """What every command that reads has to say, and one whose password is wrong."""
    wrong = {**environment, "PENSTOCK_KAFKA__SASL_PASSWORD": CANARIES["AWS_SESSION_TOKEN"]}
    asked = [
        penstock(*command.split(), environment=chosen, cwd=folder, timeout_s=240)
        for command, chosen in (
            ("settings -o json", environment),
            ("settings", environment),
            ("status -o json", environment),
            ("history -o json", environment),
            ("plan -o json", environment),
            ("doctor -o json", environment),
            ("try one", environment),
            ("doctor", wrong),
        )
    ]
    for done in asked:
        assert "Traceback" not in done.stderr, done.stderr
    assert asked[0].returncode == asked[2].returncode == 0, asked[2].stderr
    return "".join(done.stdout + done.stderr for done in asked)


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.live
@pytest.mark.timeout(900)
def test_no_canary_is_found(broker_jars: None, spark_jars: None, tmp_path: Path) -> None:
    """In no log, output, state, status, topic, argument, temporary file or crash report."""
    secrets, folder = tmp_path / "secrets", tmp_path / "run"
    secrets.mkdir()
    (folder / "temporary").mkdir(parents=True)
    (folder / "failing.py").write_text(FAILS, encoding="utf-8")
    with secured_broker(secrets, USER, CANARIES["PENSTOCK_KAFKA__SASL_PASSWORD"]) as broker:
        key = encrypt_key(secrets).splitlines()[3]
        looked_for = [*CANARIES.values(), key]
        (folder / "penstock.yaml").write_text(settings_text(broker, folder), encoding="utf-8")
        by_environment = {
            **CANARIES,
            "PYTHONPATH": str(folder),
            "TMPDIR": str(folder / "temporary"),
        }
        by_file = {n: v for n, v in by_environment.items() if not n.endswith("SASL_PASSWORD")}
        by_file["PENSTOCK_KAFKA__SASL_PASSWORD_FILE"] = str(secrets / "kafka-password")
        settings = load_settings(folder / "penstock.yaml", environment=by_file).settings
        for topic in ("orders", "one", "two"):
            Administration(broker.kafka.settings).create_topic(topic, partitions=1)
            produce(broker.kafka.settings, topic, {0: [b"a"] * 50})
        with running_group(folder, by_file):
            until(
                lambda: sum(carried_so_far(settings, ["orders"]).values()) == 50,
                "the good records are in the lake",
                folder,
            )
            for topic in ("one", "two"):  # a group is not started with records that all fail
                produce(broker.kafka.settings, topic, {0: [b"bad"] * 50})
            status = folder / "group" / "status.json"
            until(
                lambda: "partition_failed" in status.read_text(encoding="utf-8"),
                "a transformation failed",
                folder,
            )
            request = secrets / "request.json"
            content = {"environment": {"APP_WORD": REQUESTED}}
            request.write_text(json.dumps(content), encoding="utf-8")
            asked = penstock(
                *("service", "send", "update-deployments", f"@{request}", "--wait", "15s"),
                environment=by_environment,
                cwd=folder,
            )
            said = spoken(folder, by_environment)
            assert found_in_arguments([*looked_for, REQUESTED]) == []
        assert found_in(asked.stdout + asked.stderr + said, [*looked_for, REQUESTED]) == []
        # Files of Kafka are among them: what lies in the control topics lies there.
        kept = [secrets / name for name in ("kafka-password", "client-key-and-certificate.pem")]
        assert found_below(tmp_path, looked_for, without=kept) == []
        _require_only_known_places(folder)


def _require_only_known_places(folder: Path) -> None:
    """The variable of a request is where docs/security.md says, and nowhere else."""
    known = ("/deployment.json", "/state")
    found = found_below(folder, [REQUESTED])
    assert found, "the request was not obeyed"
    assert [one for one in found if not one.endswith(known)] == []
    for name in {one.partition(" in ")[2] for one in found}:
        assert (folder / name).stat().st_mode & 0o077 == 0, name
