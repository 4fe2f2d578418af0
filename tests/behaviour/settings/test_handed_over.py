"""A child process gets the settings of its parent, whatever the parent was started with."""

from pathlib import Path

import pytest

from penstock.settings import changed_settings, load_settings
from penstock.settings.handed_over import environment_beside, settings_text

SECRETS = {"PENSTOCK_KAFKA__SSL_KEY_PASSWORD": "hidden-key", "PENSTOCK_SPARK__TOKEN": "hidden-to"}
FILE = """
kafka: {sasl_password_file: secret.txt, answer_timeout: 7s}
packing: {capacity: 1234567.8B/s}
lake: {root: /srv/real, tables: {orders: {columns: [id, name]}}}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.txt").write_text("hidden-word")
    path = tmp_path / "group.yaml"
    path.write_text(FILE)
    return path


def test_what_the_parent_chose_wins_over_its_environment(file: Path) -> None:
    """Where it writes above all: variables that set options are not handed over."""
    environment = {
        "PENSTOCK_LAKE__ROOT": "/srv/real",
        "PENSTOCK_LAKE__TABLES": "{orders: {transformation: 'shop:real'}}",
        "PENSTOCK_TOPICS__PREFIX": "real",
        "PENSTOCK_SETTINGS": "other.yaml",
        "PENSTOCK_HEALTH_PORT": "8080",
        "PENSTOCK_CACHE": "/srv/cache",
        "PENSTOCK_TEST_FAST": "1",
        "PATH": "/bin",
    }
    chosen = changed_settings(
        load_settings(file, {}, environment).settings,
        {
            "lake.root": "/srv/corner",
            "topics.prefix": "study",
            "lake.tables": {"orders": {"transformation": "shop:tried"}},
        },
    )
    child = file.with_name("child.yaml")
    child.write_text(settings_text(chosen, {}))
    left = environment_beside(chosen, {}, environment)
    assert sorted(left) == ["PATH", "PENSTOCK_CACHE", "PENSTOCK_TEST_FAST"]
    found = load_settings(child, {}, left).settings
    assert found.model_dump() == chosen.model_dump() | {
        "kafka": chosen.kafka.model_dump() | {"sasl_password": None}
    }
    assert found.lake.root == "/srv/corner"


def test_secrets_are_handed_over_as_they_came(file: Path) -> None:
    """By the environment or in the file that has them, never in a file of ours."""
    # The file was named with a flag, which wins over the variable.
    environment = {**SECRETS, "PENSTOCK_KAFKA__SASL_PASSWORD": "hidden-old"}
    loaded = load_settings(file, {"kafka.sasl_password_file": "secret.txt"}, environment)
    text = settings_text(loaded.settings, loaded.secret_files)
    assert "hidden" not in text
    assert "***" not in text
    child = file.with_name("child.yaml")
    child.write_text(text)
    left = environment_beside(loaded.settings, loaded.secret_files, environment)
    assert left == SECRETS
    found = load_settings(child, {}, left).settings
    revealed = [
        None if one is None else one.reveal()
        for one in (
            found.kafka.sasl_password,
            found.kafka.ssl_key_password,
            found.spark.token,
            found.page.token,
        )
    ]
    assert revealed == ["hidden-word", "hidden-key", "hidden-to", None]


def test_a_secret_that_the_parent_does_not_use_stays_behind(file: Path) -> None:
    """As where a study runs on a broker of its own, beside the variables of the real one."""
    own = load_settings(None, {"kafka.bootstrap_servers": "127.0.0.1:9"}, {}).settings
    assert environment_beside(own, {}, SECRETS) == {}


def test_a_value_that_is_the_default_stays_as_it_is_said(file: Path) -> None:
    """Left out, it would follow the objective again."""
    stated = {"objective.freshness": "60s", "packing.target_utilisation": "0.85"}
    chosen = load_settings(None, stated, {}).settings
    child = file.with_name("child.yaml")
    child.write_text(settings_text(chosen, {}))
    found = load_settings(child, {}, {}).settings
    assert found.packing.target_utilisation == 0.85
    assert found.model_dump() == chosen.model_dump()
