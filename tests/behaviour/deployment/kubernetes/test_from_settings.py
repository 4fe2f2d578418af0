"""Building the Kubernetes back-end from settings; wrong settings are reported first."""

import json
from pathlib import Path
from typing import Any

import pytest

from kit.kubernetes.stub_api_server import StubApiServer
from penstock.deployment.kubernetes import kubernetes_deployment
from penstock.deployment.kubernetes.process.from_settings import (
    consumer_arguments,
    read_pod_template,
    require_usable,
)
from penstock.errors import SettingsError
from penstock.settings import LoadedSettings, load_settings


def loaded(environment: dict[str, str] | None = None, **flags: Any) -> LoadedSettings:
    given = {name.replace("__", "."): value for name, value in flags.items()}
    return load_settings(flags=given, environment=environment or {})


def test_an_image_must_be_named() -> None:
    """kubernetes.image has no default and must be set."""
    with pytest.raises(SettingsError, match=r"kubernetes\.image is not set"):
        require_usable(loaded().settings)
    require_usable(loaded(kubernetes__image="x").settings)


def test_a_pod_is_not_killed_before_its_batch_may_end() -> None:
    """The pod's grace period must be longer than the consumer's."""
    with pytest.raises(SettingsError, match="killed during a batch"):
        require_usable(
            loaded(
                kubernetes__image="x", kubernetes__grace_period="30s", consumer__grace="30s"
            ).settings
        )


def test_without_a_config_map_consumers_get_the_settings_as_flags() -> None:
    """Consumers get their settings as flags, without secrets and the controller's own sections."""
    found = consumer_arguments(
        loaded(
            {"PENSTOCK_KAFKA__SASL_PASSWORD": "canary", "PENSTOCK_LAKE__ROOT": "s3://lake"},
            kubernetes__image="x",
            controller__consumers_max=7,
            consumer__batch_time="3s",
            spark__options='{"spark.ui.port": "1"}',
        ),
        ["--set", "log.level=debug"],
    )
    pairs = dict(text.split("=", 1) for text in found[1::2])
    assert pairs == {
        "lake.root": "s3://lake",
        "consumer.batch_time": "3s",
        "spark.options": '{"spark.ui.port": "1"}',
        "log.level": "debug",
    }
    assert set(found[::2]) == {"--set"}
    again = load_settings(flags=pairs, environment={}).settings
    assert again.consumer.batch_time == 3.0
    assert again.spark.options == {"spark.ui.port": "1"}


def test_a_consumer_accepts_what_the_controller_accepted() -> None:
    """Options that a consumer's own are checked against come along; else its pod refuses them."""
    given = loaded(
        controller__deployment="kubernetes",
        controller__silence="60s",
        consumer__report_period="20s",
        consumer__grace="50s",
    )
    found = consumer_arguments(given, [])
    pairs = dict(text.split("=", 1) for text in found[1::2])
    again = load_settings(flags=pairs, environment={}).settings
    assert again.consumer == given.settings.consumer


def test_with_a_config_map_only_the_controllers_own_flags_follow() -> None:
    """With a ConfigMap only the controller's own flags are passed on."""
    given = loaded(kubernetes__settings_config_map="ours", consumer__batch_time="3s")
    assert consumer_arguments(given, ["--set", "a=b"]) == ["--set", "a=b"]


def test_a_pod_template_is_read_or_refused(tmp_path: Path) -> None:
    """A wrong pod template is refused with its file name and the reason."""
    file = tmp_path / "pod.yaml"
    file.write_text("spec: {nodeSelector: {disk: ssd}}\n", encoding="utf-8")
    assert read_pod_template(str(file)) == {"spec": {"nodeSelector": {"disk": "ssd"}}}
    assert read_pod_template("") == {}
    file.write_text("", encoding="utf-8")
    assert read_pod_template(str(file)) == {}
    for content in ("spec: [", "- a", "spec: {containers: [{image: x}]}"):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(SettingsError, match=str(file)):
            read_pod_template(str(file))
    with pytest.raises(SettingsError, match="none"):
        read_pod_template(str(tmp_path / "none"))


def test_a_missing_owner_is_an_error() -> None:
    """An owner that does not exist is a settings error."""

    def nothing(*_: Any) -> tuple[int, Any, dict[str, str]]:
        return 404, {"message": "not found"}, {}

    given = loaded(kubernetes__image="x", kubernetes__owner="gone")
    with StubApiServer(nothing) as server, pytest.raises(SettingsError, match="no Deployment gone"):
        kubernetes_deployment(given, allowed=server.access())


def _with(part: str, value: object, containers: str = "containers") -> str:
    return json.dumps({"spec": {containers: [{"name": "consumer", part: value}]}})


def _with_variable(name: str, value: str, containers: str = "containers") -> str:
    return _with("env", [{"name": name, "value": value}], containers)


@pytest.mark.parametrize(
    "written",
    [
        _with_variable("AWS_SECRET_ACCESS_KEY", "canary-of-a-pod"),
        _with_variable("PENSTOCK_KAFKA__SASL_PASSWORD", "canary-of-a-pod"),
        _with_variable("DATABASE", "postgres://me:canary-of-a-pod@host"),
        _with_variable("SOME_TOKEN", "canary-of-a-pod", "initContainers"),
        _with_variable("DB_PASS", "canary-of-a-pod"),
        _with_variable("JAVA_TOOL_OPTIONS", "-Djavax.keyStorePassword=canary-of-a-pod"),
        _with("args", ["--password=canary-of-a-pod"]),
        _with("command", ["tool", "https://me:canary-of-a-pod@host"]),
    ],
)
def test_a_secret_in_clear_in_the_pod_template_is_refused(written: str, tmp_path: Path) -> None:
    """The template is copied into the settings map, the Deployments and the state topic."""
    file = tmp_path / "pod-template.yaml"
    file.write_text(written, encoding="utf-8")
    with pytest.raises(SettingsError, match="has a secret as its value") as raised:
        read_pod_template(str(file))
    assert "secretKeyRef" in raised.value.remedy
    assert "canary-of-a-pod" not in f"{raised.value} {raised.value.remedy}"


@pytest.mark.parametrize(
    "env",
    [
        None,
        "not a list",
        ["not a variable", {"name": "AWS_REGION", "value": "north"}],
        [{"name": "AWS_SECRET_ACCESS_KEY", "valueFrom": {"secretKeyRef": {"name": "s"}}}],
        [{"name": "PENSTOCK_SPARK__TOKEN_FILE", "value": "/etc/token"}],
    ],
)
def test_other_variables_of_the_pod_template_are_taken(env: object, tmp_path: Path) -> None:
    """A secret by its name in a Secret, or by its file; what is wrong the API server says."""
    file = tmp_path / "pod-template.yaml"
    content = {"spec": {"containers": [{"name": "consumer", "env": env}], "initContainers": "x"}}
    file.write_text(json.dumps(content), encoding="utf-8")
    assert read_pod_template(str(file)) == content
