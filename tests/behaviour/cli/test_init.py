"""`penstock init`: what it writes is a start that works."""

from pathlib import Path

import pytest
import yaml

from kit.program import invoked, penstock
from penstock.settings import load_settings


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """A file of any of the names is left as it is, and none of the others is written."""
    (tmp_path / "my_transformations.py").write_text("mine")
    again = penstock("init", str(tmp_path))
    assert again.returncode == 2
    assert "my_transformations.py exists already; nothing was written" in again.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["my_transformations.py"]
    assert (tmp_path / "my_transformations.py").read_text() == "mine"


def test_the_settings_are_those_that_were_asked_for(tmp_path: Path) -> None:
    """The topic, its table and the brokers; without brokers `penstock up` starts its own."""
    assert invoked("init", str(tmp_path / "a"), "--topic", "web.orders").exit_code == 0
    loaded = load_settings(tmp_path / "a" / "penstock.yaml", environment={})
    table = loaded.settings.lake.tables["web.orders"]
    assert table.transformation == "my_transformations:decode"
    assert loaded.settings.monitor.include == ["web[.]orders"]
    assert ("kafka", "bootstrap_servers") not in loaded.origin
    where = ("--bootstrap-server", "kafka.example:9092")
    assert invoked("init", str(tmp_path / "b"), *where).exit_code == 0
    named = load_settings(tmp_path / "b" / "penstock.yaml", environment={})
    assert named.settings.kafka.bootstrap_servers == "kafka.example:9092"


def test_several_topics_have_a_table_each(tmp_path: Path) -> None:
    """One who has two topics ran it twice, and the second was refused."""
    asked = ("--topic", "web.orders", "--topic", "payments", "--topic", "payments")
    assert invoked("init", str(tmp_path), *asked).exit_code == 0
    settings = load_settings(tmp_path / "penstock.yaml", environment={}).settings
    assert settings.monitor.include == ["web[.]orders", "payments"]
    assert {name: one.transformation for name, one in settings.lake.tables.items()} == {
        "web.orders": "my_transformations:decode",
        "payments": "my_transformations:decode",
    }


@pytest.mark.parametrize("topic", ["123", "1.5", "null", "on", "2026-01-31", "1e5", "0x1f"])
def test_a_topic_whose_name_looks_like_another_value_is_a_topic(tmp_path: Path, topic: str) -> None:
    """YAML read a number or nothing, and every command refused the file."""
    assert invoked("init", str(tmp_path), "--topic", topic).exit_code == 0
    settings = load_settings(tmp_path / "penstock.yaml", environment={}).settings
    assert list(settings.lake.tables) == [topic]


def test_a_name_that_is_no_topic_is_refused(tmp_path: Path) -> None:
    """Before anything is written."""
    done = penstock("init", str(tmp_path / "new"), "--topic", "no/topic")
    assert done.returncode == 2
    assert "not a topic's name" in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    """A file is in its place."""
    (tmp_path / "file").write_text("no folder")
    done = penstock("init", str(tmp_path / "file" / "new"))
    assert done.returncode == 1
    assert "Could not write" in done.stderr


@pytest.mark.parametrize("given", [[], ["--bootstrap-server", "127.0.0.1:9092"]])
def test_the_ways_in_are_comments_that_can_be_used(tmp_path: Path, given: list[str]) -> None:
    """Without their `# ` the lines of a login, and those of a certificate, are settings."""
    assert invoked("init", str(tmp_path), *given).exit_code == 0
    text = (tmp_path / "penstock.yaml").read_text(encoding="utf-8")
    login, certificate = _uncommented(text, "TLS, with a login"), _uncommented(text, "in place of")
    for block, protocol in ((login, "SASL_SSL"), (certificate, "SSL")):
        kafka = yaml.safe_load("kafka:\n" + block)["kafka"]
        assert kafka["properties"]["security.protocol"] == protocol
    assert "sasl_password_file: /etc/penstock/kafka-password" in login
    assert "ssl.key.location" in certificate


def _uncommented(text: str, note: str) -> str:
    """The lines from the one with this note to the next way in, as settings."""
    lines = iter(text.splitlines())
    found = [next(line for line in lines if note in line)]
    for line in lines:
        if "properties:" in line or "#" not in line[:4]:
            break
        found.append(line)
    return "\n".join(line.replace("# ", "", 1) for line in found)
