"""No secret of a real group leaks: neither into logs and files nor into topics and answers.

Canaries are planted wherever a secret can enter. The group carries records, a transformation fails,
a request sets a variable, a password is wrong, a consumer and Spark crash. Then everything that the
group wrote and answered is searched. Arguments of processes are looked at all the time.

What needs no group is looked for elsewhere: objects of Kubernetes (tests/behaviour/deployment/
kubernetes/test_canaries.py), the bill of materials (tests/contracts/test_supply.py), Spark's plans
and web page (tests/real_spark/test_secrets_in_spark.py).
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

from kit.canaries import CANARIES, REQUESTED, found_below, found_in, watched_arguments
from kit.group.asked import everything_of_page, page_port, scraped_targets
from kit.kafka.secured_broker import SecuredBroker, secured_broker
from kit.lake.lake import produce
from kit.processes import processes_naming
from kit.program import penstock
from penstock.cli.status import NOT_WELL
from penstock.kafka_io.administration import Administration
from penstock.pipeline.connect_server import MAIN_CLASS
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
            "page": {"address": "127.0.0.1:0"},
            "telemetry": {"metrics_targets": str(folder / "metrics")},
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
    assert asked[0].returncode == 0, asked[0].stderr
    # The transformation fails on purpose, so a partition may be stopped.
    is_well = not json.loads(asked[2].stdout)["conditions"]
    assert asked[2].returncode == (0 if is_well else NOT_WELL), asked[2].stderr
    return "".join(done.stdout + done.stderr for done in asked)


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.live
@pytest.mark.timeout(900)
def test_no_canary_is_found(broker_jars: None, spark_jars: None, tmp_path: Path) -> None:
    """In no log, output, answer, state, topic, argument, temporary file or crash report."""
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
            # And whatever the tests run with: a working tree may not be the one that is installed.
            "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
            "TMPDIR": str(folder / "temporary"),
        }
        by_file = {n: v for n, v in by_environment.items() if not n.endswith("SASL_PASSWORD")}
        by_file["PENSTOCK_KAFKA__SASL_PASSWORD_FILE"] = str(secrets / "kafka-password")
        settings = load_settings(folder / "penstock.yaml", environment=by_file).settings
        for topic in ("orders", "one", "two"):
            Administration(broker.kafka.settings).create_topic(topic, partitions=1)
            produce(broker.kafka.settings, topic, {0: [b"a"] * 50})
        with watched_arguments([*looked_for, REQUESTED]) as seen, running_group(folder, by_file):
            until(
                lambda: sum(carried_so_far(settings, ["orders"]).values()) == 50,
                "the good records are in the lake",
                folder,
            )
            request = secrets / "request.json"
            content = {"environment": {"APP_WORD": REQUESTED}}
            request.write_text(json.dumps(content), encoding="utf-8")
            asked = penstock(
                *("service", "send", "update-deployments", f"@{request}", "--wait", "240s"),
                environment=by_environment,
                cwd=folder,
                timeout_s=BUSY_S,
            )
            assert asked.returncode == 0, asked.stdout + asked.stderr
            for topic in ("one", "two"):  # neither a start nor a roll-out passes with them
                produce(broker.kafka.settings, topic, {0: [b"bad"] * 50})
            status = folder / "group" / "status.json"
            until(
                lambda: "partition_failed" in status.read_text(encoding="utf-8"),
                "a transformation failed",
                folder,
            )
            said = spoken(folder, by_environment)
            _require_silent_answers(folder, [*looked_for, REQUESTED])
            _crash(folder)
        assert found_in(asked.stdout + asked.stderr + said, [*looked_for, REQUESTED]) == []
        assert seen == set()
        # Files of Kafka are among them: what lies in the control topics lies there.
        kept = [secrets / name for name in ("kafka-password", "client-key-and-certificate.pem")]
        assert found_below(tmp_path, looked_for, without=kept) == []
        _require_only_known_places(folder)


def _require_silent_answers(folder: Path, looked_for: list[str]) -> None:
    """Every process's metrics and health, every route of the page, and its stream of events."""
    targets = scraped_targets(folder / "metrics")
    assert {"controller", "monitor"} < targets.keys()
    assert 'code="partition_failed"' in targets["controller"]
    (consumer,) = [text for name, text in targets.items() if "consumer" in name]
    assert "penstock_batches_total" in consumer
    token = CANARIES["PENSTOCK_PAGE__TOKEN"]
    answers = everything_of_page(page_port(folder / "up.log"), token, {"orders": 0, "one": 0})
    assert '"stopped"' in answers["/v1/status"]
    assert '"orders"' in answers["/v1/tables"]
    assert "event: summary" in answers["/v1/events"]
    for where, text in {**targets, **answers}.items():
        assert found_in(text, looked_for) == [], where


def _crash(folder: Path) -> None:
    """A consumer and then Spark crash: what they leave is below the folder.

    Java writes a report of a fault in memory, and none when it is only aborted.
    """
    (consumer,) = _consumers(folder)
    os.kill(consumer, signal.SIGABRT)
    until(lambda: bool(_consumers(folder) - {consumer}), "the consumer is started again", folder)
    (spark,) = [one for one in processes_naming(MAIN_CLASS) if _is_of(one, folder)]
    os.kill(spark, signal.SIGSEGV)
    until(lambda: spark not in processes_naming(MAIN_CLASS), "Spark has crashed", folder)
    assert list(folder.rglob(f"hs_err_pid{spark}.log")), "Java reports its crash"


def _consumers(folder: Path) -> set[int]:
    """The processes of the living consumers, as the group notes them."""
    texts = [file.read_text() for file in (folder / "group").rglob("deployment.json")]
    noted: list[dict[str, int] | None] = [json.loads(text)["process"] for text in texts]
    living = set(processes_naming("penstock"))
    return {one["pid"] for one in noted if one and one["pid"] in living}


def _is_of(pid: int, folder: Path) -> bool:
    return Path(f"/proc/{pid}/cwd").resolve() == folder.resolve()


def _require_only_known_places(folder: Path) -> None:
    """The variable of a request is where docs/security.md says, and nowhere else."""
    known = ("/deployment.json", "/state")
    found = found_below(folder, [REQUESTED])
    assert found, "the request was not obeyed"
    assert [one for one in found if not one.endswith(known)] == []
    for name in {one.partition(" in ")[2] for one in found}:
        assert (folder / name).stat().st_mode & 0o077 == 0, name
