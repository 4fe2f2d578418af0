"""The program's help, version, streams, exit codes and colour."""

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import structlog
import yaml

from kit.program import penstock
from penstock import __version__
from penstock.cli import doctor
from penstock.settings import Settings
from penstock.settings.sections import KafkaSettings
from penstock.telemetry import configure_logs, get_logger

COMMANDS = [
    ["broker"], ["broker", "start"], ["broker", "stop"], ["broker", "status"],
    ["campaign"], ["demo"], ["doctor"], ["jars"], ["jars", "fetch"], ["jars", "status"],
    ["init"], ["load"], ["settings"], ["try"],
    ["settings", "reference"], ["settings", "schema"], ["topics"], ["topics", "create"],
    ["topics", "check"],
]  # fmt: skip


def test_version() -> None:
    """`--version` prints one line on stdout."""
    done = penstock("--version")
    assert (done.returncode, done.stdout) == (0, f"penstock {__version__}\n")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(command: list[str]) -> None:
    """Every command has a help text that says more than its name."""
    done = penstock(*command, "--help")
    assert done.returncode == 0
    assert "Usage" in done.stdout
    assert len(done.stdout) > 300


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["broker", "start", "--brokers", "many"], ["--wrong"]]
)
def test_wrong_usage_is_exit_code_two(arguments: list[str]) -> None:
    """Wrong usage ends with exit code 2, as with other programs."""
    assert penstock(*arguments).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "explanation"),
    [
        (["settings", "--set", "nonsense"], "--set takes NAME=VALUE"),
        (["load", "orders=1MB/s", "--duration", "soon"], "not a duration"),
        (["load", "orders=1MB/s", "--record-size", "3"], "at least"),
        (["service", "send", "change-settings", '{"nosuch": 1}'], "unknown field nosuch"),
        (["service", "send", "change-settings", "packing.capacty=1"], "no setting packing.capacty"),
        (["service", "send", "change-settings", "kafka.answer_timeout=1s"], "cannot be changed by"),
        (
            ["service", "send", "change-settings", "packing.capacity"],
            "change-settings takes NAME=VALUE",
        ),
        (["service", "send", "pause", "{}", "{}"], "takes one JSON text"),
        (["service", "send", "change-settings", '{"algoritm": "MWF"}'], "Did you mean algorithm?"),
        (["service", "send", "pause", '{"until_unix_ms": 0}'], "would end before it begins"),
        (["pause", "--until", "2020-01-01"], "would end before it begins"),
        (["pause", "--until", "1e308d"], "neither a duration"),
        (["pause", "--until", "1e12s"], "until_unix_ms: Input should be less"),
        (["load", "orders=1MB/s", "--keys", "some"], "--keys"),
        (["load", "orders=1MB/s", "--report", "speeds.txt"], ".csv or .json"),
        (["load", "orders=1MB/s", "--report", "no/such/folder/a.csv"], "There is no directory"),
    ],
)
def test_wrong_arguments_are_one_message(arguments: list[str], explanation: str) -> None:
    """Exit code 2, one message on stderr, and nothing on stdout."""
    done = penstock(*arguments)
    assert done.returncode == 2
    assert explanation in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "explanation"),
    [
        (["--set", "kafka.wrong=1"], "unknown setting kafka.wrong"),
        (["--set", "kafka.answer_timeout=30"], "has no unit"),
        (["--set", "packing.knob=7"], "flag: packing.knob: Input should be"),
        (
            ["--set", "consumer.report_period=5s"],
            "consumer.report_period (5s) is more than half of controller.silence (8s): healthy",
        ),
        (
            ["--set", "monitor.period=6s"],
            "monitor.period (6s) is more than half of controller.speeds_stale (10s): no meas",
        ),
        (
            ["--set", "controller.consumer_grace=5s", "--set", "consumer.grace=1m"],
            "controller.consumer_grace (5s) is not longer than consumer.grace (1m)",
        ),
        (["-f", "none.yaml"], "Could not read the settings file none.yaml"),
    ],
)
def test_wrong_settings_are_exit_code_three(arguments: list[str], explanation: str) -> None:
    """Every command that reads wrong settings ends with exit code 3."""
    for command in (["settings"], ["topics", "check"], ["doctor"]):
        done = penstock(*command, *arguments)
        assert done.returncode == 3
        assert explanation in done.stderr
        assert done.stdout == ""


@pytest.mark.parametrize(
    "command", [["topics", "check"], ["topics", "create"], ["load", "a=1MB/s"]]
)
def test_an_unreachable_broker_is_exit_code_four(command: list[str]) -> None:
    """One message names the address, within seconds."""
    done = penstock(
        *command, "--bootstrap-server", "127.0.0.1:9", "--set", "kafka.answer_timeout=2s"
    )
    assert done.returncode == 4
    assert "No Kafka broker answers at 127.0.0.1:9" in done.stderr
    assert done.stderr.count("\n") <= 3


def test_doctor_without_a_broker() -> None:
    """Every line is ok or has a remedy; the exit code is that of the first problem."""
    done = penstock("doctor", "--bootstrap-server", "127.0.0.1:9", "-o", "json")
    checks = {one["check"]: one for one in json.loads(done.stdout)}
    assert checks["java"]["ok"]
    assert not checks["ports"]["ok"]
    assert "penstock broker start" in checks["ports"]["remedy"]
    said = done.stderr.splitlines()
    assert said.index("checking Java") < said.index("trying the lake lake")
    assert said[-2:] == ["checking whether a broker's port answers", "checking encryption"]
    assert done.returncode in {1, 4}  # 1 where the jars were never fetched


@pytest.mark.parametrize(
    ("flags", "is_ok", "said"),
    [
        ([], False, "would not be encrypted"),
        (["--set", "spark.insecure=true"], True, "WARNING: sc://spark.example:1, without a token"),
    ],
)
def test_doctor_names_a_spark_server_that_others_reach(
    flags: list[str], is_ok: bool, said: str
) -> None:
    """Without TLS it is refused, or a warning where it is meant."""
    given = ["--set", "spark.master=sc://spark.example:1", *flags]
    done = penstock("doctor", "--bootstrap-server", "127.0.0.1:9", "-o", "json", *given)
    (found,) = [one for one in json.loads(done.stdout) if one["check"] == "spark server"]
    assert found["ok"] == is_ok
    assert said in found["explanation"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "SSL: encrypted"),
        (
            ("ssl.certificate.location", "ssl.key.location"),
            "SSL: encrypted, with a certificate of this client",
        ),
    ],
)
def test_doctor_says_whether_a_client_certificate_is_used(
    names: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who set one up wants to see that it is used."""
    file = tmp_path / "file.pem"
    file.touch()
    monkeypatch.setattr(doctor, "require_usable", lambda _: None)  # it would want a real one
    properties = {"security.protocol": "SSL", **dict.fromkeys(names, str(file))}
    kafka = KafkaSettings(bootstrap_servers="kafka.example:9093", properties=properties)
    assert doctor._encryption(Settings(kafka=kafka)) == said


def test_settings_in_three_forms(tmp_path: Path) -> None:
    """Table, JSON and YAML show the same values with their origins."""
    (tmp_path / "penstock.yaml").write_text("topics: {prefix: mine}", encoding="utf-8")
    for output, parse in (("json", json.loads), ("yaml", yaml.safe_load)):
        done = penstock("settings", "-o", output, cwd=tmp_path)
        rows = {row["option"]: row for row in parse(done.stdout)}
        expected = {"option": "topics.prefix", "value": "mine", "origin": "penstock.yaml"}
        assert rows["topics.prefix"] == expected
        assert rows["log.level"]["origin"] == "default"
    table = penstock("settings", cwd=tmp_path)
    assert "penstock.yaml" in table.stdout


def test_no_colour_in_a_pipe() -> None:
    """Nothing written to a pipe has escape codes, not even errors."""
    done = penstock("doctor", "--bootstrap-server", "127.0.0.1:9")
    assert "\x1b" not in done.stdout + done.stderr


def test_the_schema_has_every_section() -> None:
    """The JSON Schema has every section of the settings."""
    schema = json.loads(penstock("settings", "schema").stdout)
    assert {"kafka", "topics", "log"} <= set(schema["properties"])
    assert schema["additionalProperties"] is False


def test_logs_are_events_with_levels() -> None:
    """JSON log lines parse, have a level, and respect the lowest level."""
    script = (
        "from penstock.telemetry import configure_logs, get_logger\n"
        "from penstock.settings import Secret\n"
        "configure_logs('warning', 'json')\n"
        "log = get_logger(component='test')\n"
        "log.info('unseen')\nlog.warning('seen', shown=Secret('canary'), count=3)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    event = json.loads(line)
    assert (event["event"], event["level"], event["component"]) == ("seen", "warning", "test")
    assert event["shown"] == "***"


def test_logs_follow_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """After stderr was replaced and the old one closed, events go to the new one."""
    before = structlog.get_config()
    old = io.StringIO()
    try:
        with contextlib.redirect_stderr(old):
            configure_logs("info", "json")
            log = get_logger(component="test")
            log.info("first")
        old_text = old.getvalue()
        old.close()
        log.info("second")
    finally:
        structlog.configure(**before)
    assert json.loads(old_text)["event"] == "first"
    assert json.loads(capsys.readouterr().err)["event"] == "second"
