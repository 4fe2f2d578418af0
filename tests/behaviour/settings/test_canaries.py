"""Every secret of the settings, planted: no text that is made of the settings has it.

The list is that of the settings themselves, so a new secret is looked for without a change here.
"""

import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from kit.canaries import CANARIES, found_below, found_in, watched_arguments
from penstock.controller.process.prefix_holder import Holder
from penstock.deployment.kubernetes.process.from_settings import consumer_arguments
from penstock.kafka_io.client_properties import java_properties
from penstock.pipeline.session import REDACTION
from penstock.settings import LoadedSettings, Settings, load_settings
from penstock.settings.sections import KafkaSettings
from penstock.settings.snapshot import consumers_digest, snapshot_text, write_snapshot
from penstock.settings.tree import secret_options
from penstock.telemetry import get_logger
from penstock.telemetry.logs import configure_logs

PLANTED = {
    path: f"canary-{'-'.join(path).replace('_', '-')}-{number}"
    for number, path in enumerate(sorted(secret_options()))
}


@pytest.fixture
def loaded() -> LoadedSettings:
    environment = {f"PENSTOCK_{'__'.join(path).upper()}": word for path, word in PLANTED.items()}
    return load_settings(None, {}, environment, cores=2)


def test_every_secret_of_the_settings_is_planted_in_a_real_group() -> None:
    """The list of canaries has them all."""
    named = {f"PENSTOCK_{'__'.join(path).upper()}" for path in secret_options()}
    assert named == {name for name in CANARIES if name.startswith("PENSTOCK_")}


def _fail_with(settings: Settings) -> None:
    raise RuntimeError(settings)


def test_no_text_of_the_settings_has_them(
    loaded: LoadedSettings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prints, dumps, copies, digests, arguments of consumers, the record of who leads, logs."""
    settings = loaded.settings
    texts = [
        repr(loaded),
        str(settings),
        settings.model_dump_json(),
        str(settings.model_dump()),
        json.dumps(settings.model_dump(mode="json")),
        snapshot_text(loaded),
        consumers_digest(loaded),
        " ".join(consumer_arguments(loaded, ["--set", "a=b"])),
        repr(Holder.of_this_process(settings).record(settings)),
    ]
    forms: tuple[Literal["text", "json"], ...] = ("text", "json")
    for form in forms:
        configure_logs("debug", form)
        try:
            _fail_with(settings)
        except RuntimeError:
            get_logger(component="test").exception("failed", settings=settings, all=loaded)
    configure_logs(logging.getLevelName(logging.INFO), "text")
    said = capsys.readouterr()
    assert found_in("".join([*texts, said.out, said.err]), PLANTED.values()) == []
    write_snapshot(tmp_path, loaded)
    assert found_below(tmp_path, PLANTED.values()) == []


def test_spark_masks_every_option_that_carries_one(tmp_path: Path) -> None:
    """Their names match what Spark is told to mask in plans and logs."""
    client = tmp_path / "client.pem"
    client.write_text(
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\n-----BEGIN CERTIFICATE-----\n", encoding="utf-8"
    )
    environment = {
        "PENSTOCK_KAFKA__PROPERTIES": json.dumps(
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "penny",
                "ssl.certificate.location": str(client),
                "ssl.key.location": str(client),
            }
        ),
        "PENSTOCK_KAFKA__SASL_PASSWORD": PLANTED["kafka", "sasl_password"],
        "PENSTOCK_KAFKA__SSL_KEY_PASSWORD": PLANTED["kafka", "ssl_key_password"],
    }
    kafka: KafkaSettings = load_settings(None, {}, environment, cores=2).settings.kafka
    carrying = {
        n for n, value in java_properties(kafka).items() if found_in(value, PLANTED.values())
    }
    assert len(carrying) == 2
    for name in carrying:
        assert re.search(REDACTION, f"kafka.{name}"), name


def test_what_is_planted_is_found(tmp_path: Path) -> None:
    """The search itself: in a file, in a folder below, and not in what is left out."""
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "log").write_bytes(b"\x00x canary-1 \xff")
    (tmp_path / "kept").write_text("canary-1", encoding="utf-8")
    assert found_below(tmp_path, ["canary-1", "canary-2"], without=[tmp_path / "kept"]) == [
        "canary-1 in below/log"
    ]


def test_an_argument_of_a_process_that_has_ended_is_found() -> None:
    """It was there for half a second, and nobody looked for it at the end."""
    with watched_arguments(["canary-of-a-moment"]) as found:
        sleeping = [sys.executable, "-c", "import time; time.sleep(0.5)", "canary-of-a-moment"]
        subprocess.run(sleeping, check=True)
    assert found
