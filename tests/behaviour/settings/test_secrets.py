"""A secret comes from a file or the environment, and is never printed."""

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.program import penstock
from penstock.errors import SettingsError
from penstock.kafka_io.client_properties import kafka_python_properties, librdkafka_properties
from penstock.settings import Secret, load_settings
from penstock.settings.sections.spark import GUARDS
from penstock.settings.tree import secret_options

CANARY = "canary-f2d8"


def test_no_text_form_shows_it() -> None:
    """str, repr, format, f-string and JSON all show a mask."""
    secret = Secret(CANARY)
    texts = [str(secret), repr(secret), f"{secret:>20}", f"{[secret]}", "%s" % secret]  # noqa: UP031 -- one of the ways to print
    texts.append(json.dumps({"a": secret}, default=str))
    assert all(CANARY not in text for text in texts)
    assert secret.reveal() == CANARY


@pytest.mark.parametrize("copier", [pickle.dumps, copy.deepcopy])
def test_it_cannot_be_copied_or_pickled(copier: Callable[[object], object]) -> None:
    """Copying and pickling a secret are refused."""
    with pytest.raises(TypeError, match="cannot be pickled"):
        copier(Secret(CANARY))


def test_from_the_environment_and_from_a_file(tmp_path: Path) -> None:
    """A secret from either source reaches the client, with its origin."""
    file = tmp_path / "password"
    file.write_text(f"{CANARY}\n", encoding="utf-8")
    by_environment = load_settings(environment={"PENSTOCK_KAFKA__SASL_PASSWORD": CANARY})
    by_file = load_settings(environment={"PENSTOCK_KAFKA__SASL_PASSWORD_FILE": str(file)})
    for loaded in (by_environment, by_file):
        assert librdkafka_properties(loaded.settings.kafka)["sasl.password"] == CANARY
        assert kafka_python_properties(loaded.settings.kafka)["sasl_plain_password"] == CANARY
        assert CANARY not in repr(loaded)
        assert CANARY not in loaded.settings.model_dump_json()
    assert str(file) in by_file.origin["kafka", "sasl_password"]


def test_a_secret_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """The error names the file and quotes none of its content."""
    with pytest.raises(SettingsError, match="could not read the secret from"):
        load_settings(environment={"PENSTOCK_KAFKA__SASL_PASSWORD_FILE": str(tmp_path / "none")})


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_the_settings_command_masks_it(output: str) -> None:
    """`penstock settings` shows a mask in place of the secret."""
    done = penstock("settings", "-o", output, environment={"PENSTOCK_KAFKA__SASL_PASSWORD": CANARY})
    assert done.returncode == 0
    assert "***" in done.stdout
    assert CANARY not in done.stdout + done.stderr


def test_a_user_without_a_password_is_a_settings_error() -> None:
    """A SASL user without a password is a settings error."""
    login = "{security.protocol: SASL_SSL, sasl.mechanism: PLAIN, sasl.username: penny}"
    loaded = load_settings(environment={"PENSTOCK_KAFKA__PROPERTIES": login})
    with pytest.raises(SettingsError, match="no password"):
        kafka_python_properties(loaded.settings.kafka)


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("lake.storage_options", "AWS_SECRET_ACCESS_KEY"),
        ("lake.storage_options", "azure_storage_sas_token"),
        ("spark.options", "spark.hadoop.fs.s3a.secret.key"),
        ("lake.storage_options", "azure_storage_account_key"),
        ("lake.storage_options", "AZURE_STORAGE_SAS_KEY"),
        ("lake.storage_options", "google_service_account_key"),
        ("lake.storage_options", "aws_sse_customer_key_base64"),
        ("spark.options", "spark.hadoop.fs.s3a.access.key"),
        ("spark.options", "spark.hadoop.fs.azure.account.key.me.dfs.core.windows.net"),
        ("spark.options", "spark.hadoop.fs.azure.sas.fixed.me.dfs.core.windows.net"),
        ("spark.options", "spark.hadoop.fs.gs.auth.service.account.private.key"),
        ("spark.options", "spark.ssl.keyPassword"),
        ("spark.options", "spark.executorEnv.DB_PASS"),
        ("spark.options", "spark.executorEnv.DB_PWD"),
        ("lake.storage_options", "azure_storage_sas"),
    ],
)
def test_a_secret_among_options_of_others_is_refused_and_not_quoted(option: str, name: str) -> None:
    """They are printed by `penstock settings`, copied into the group's folder, and arguments."""
    with pytest.raises(SettingsError, match=f"{name} is a secret") as raised:
        load_settings(flags={option: json.dumps({name: CANARY})}, environment={})
    assert CANARY not in str(raised.value)


@pytest.mark.parametrize(
    ("option", "written"),
    [
        ("lake.root", f"s3://user:{CANARY}@bucket/lake"),
        ("lake.root", f"s3://AKIA:ab/34{CANARY}@bucket/lake"),
        ("lake.root", f"https://account.example/c?sv=1&sig={CANARY}"),
        ("spark.options", json.dumps({"spark.x": f"-Da=b -Djavax.keyStorePassword={CANARY}"})),
        ("spark.options", json.dumps({"spark.x": f"https://host/x?access_token='{CANARY}'"})),
        (
            "lake.storage_options",
            json.dumps({"endpoint": f"https://h/?X-Amz-Security-Token={CANARY}"}),
        ),
        ("lake.storage_options", json.dumps({"proxy_url": f"http://user:{CANARY}@proxy:1"})),
        ("spark.options", json.dumps({"spark.x": f"https://user:{CANARY}@host"})),
        ("spark.master", f"sc://user:{CANARY}@host:1"),
        ("spark.master", f"sc://host:1/;use_ssl=true;x-api-key={CANARY}"),
        ("spark.master", f"sc://host:1/;Authorization=Bearer {CANARY}"),
        ("kafka.bootstrap_servers", f"user:{CANARY}@broker:9092"),
        ("kafka.bootstrap_servers", f"kafka://user:{CANARY}@broker:9092"),
    ],
)
def test_a_password_in_an_address_is_refused_and_not_quoted(option: str, written: str) -> None:
    """Addresses are in every log and status."""
    with pytest.raises(SettingsError) as raised:
        load_settings(flags={option: written}, environment={})
    assert option in str(raised.value)
    assert CANARY not in f"{raised.value} {raised.value.remedy}"


@pytest.mark.parametrize(
    "root",
    [
        "abfss://container@account.dfs.core.windows.net/lake",
        "https://store:9000/lake@home",
    ],
)
def test_an_address_with_an_at_sign_and_no_password_is_one(root: str) -> None:
    """Azure's is a container at an account."""
    assert load_settings(flags={"lake.root": root}, environment={}).settings.lake.root == root


@pytest.mark.parametrize("path", sorted(secret_options()))
@pytest.mark.parametrize("text", ["", "\n", "  "])
def test_an_empty_secret_is_refused(path: tuple[str, ...], text: str, tmp_path: Path) -> None:
    """A Spark server or a page with an empty token would let everybody in."""
    variable = f"PENSTOCK_{'__'.join(path).upper()}"
    file = tmp_path / "secret"
    file.write_text(text, encoding="utf-8")
    for given in ({variable: text}, {f"{variable}_FILE": str(file)}):
        with pytest.raises(SettingsError, match="the secret is empty") as raised:
            load_settings(environment=given)
        assert variable in str(raised.value)


@pytest.mark.parametrize("name", sorted(GUARDS))
def test_options_of_spark_do_not_undo_a_guard(name: str) -> None:
    """What masks passwords, and where a server can be reached."""
    with pytest.raises(SettingsError, match="is set by Penstock"):
        load_settings(flags={"spark.options": json.dumps({name: "x"})}, environment={})


def test_where_a_secret_is_may_be_said() -> None:
    """A class that finds credentials is no secret."""
    options = {
        "spark.hadoop.fs.s3a.aws.credentials.provider": "x.Y",
        "spark.driver.extraJavaOptions": "-Djmxremote.password.file=/etc/x -XX:MaxRAM=1g",
        "spark.pass_through": "true",
    }
    found = load_settings(flags={"spark.options": json.dumps(options)}, environment={})
    assert found.settings.spark.options == options


@pytest.mark.parametrize("value", ["{a: ", "5", "[x]", "{a: {b: c}}"])
def test_a_wrong_mapping_is_not_quoted(value: str) -> None:
    """Somebody may have put a secret into it."""
    broken = value.replace("a", f"AWS_SECRET: {CANARY}, a")
    with pytest.raises(SettingsError) as raised:
        load_settings(environment={"PENSTOCK_LAKE__STORAGE_OPTIONS": broken})
    assert CANARY not in str(raised.value)
