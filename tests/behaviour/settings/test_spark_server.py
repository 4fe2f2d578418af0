"""The token of a Spark Connect server, and where what goes to it may travel."""

import pytest

from penstock.errors import SettingsError
from penstock.settings import changed_settings, load_settings
from penstock.settings.sections import SparkSettings

TOKEN = {"PENSTOCK_SPARK__TOKEN": "of-the-server"}
PASSWORD = {"PENSTOCK_KAFKA__SASL_PASSWORD": "of-kafka"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"spark.master": "sc://spark:1/;token=word"}, "spark.token_file"),
        ({"spark.options": '{"spark.connect.authenticate.token": "word"}'}, "spark.token_file"),
        ({"spark.token": "word"}, "spark.token_file"),
        ({"spark.certificate_file": "a"}, "together"),
    ],
)
def test_a_token_in_the_wrong_place_is_refused(flags: dict[str, str], said: str) -> None:
    """Where everybody could read it; the right place is named, and the token is not."""
    with pytest.raises(SettingsError) as refused:
        load_settings(flags=flags, environment={})
    text = f"{refused.value} {refused.value.remedy}"
    assert said in text
    assert "word" not in text


@pytest.mark.parametrize(
    ("master", "port", "is_exposed"),
    [
        ("sc://127.0.0.1:7", 7, False),
        ("sc://127.0.0.2:7/;user_id=me", 7, False),
        ("sc://localhost", 15002, False),
        ("sc://[::1]:7", 7, False),
        ("sc://spark:7", None, True),
        ("sc://127.0.0.1.example:7", None, True),
        ("sc://spark:7/;use_ssl=false", None, True),
        ("sc://spark:7/;user_id=me;use_ssl=true", None, False),
        ("local[2]", None, False),
        ("spark://spark:7077", None, False),
    ],
)
def test_only_what_leaves_the_machine_without_tls_is_exposed(
    master: str, port: int | None, is_exposed: bool
) -> None:
    """The loopback has a port of this machine; other Connect servers need TLS."""
    spark = SparkSettings(master=master)
    assert (spark.server_port, spark.is_exposed) == (port, is_exposed)


def test_credentials_of_kafka_do_not_cross_in_clear_text() -> None:
    """Not even with `spark.insecure`; with TLS, or on this machine, they may."""
    exposed = {"spark.master": "sc://spark:1", "spark.insecure": "true"}
    for secret in (PASSWORD, {"PENSTOCK_KAFKA__SSL_KEY_PASSWORD": "of-kafka"}):
        with pytest.raises(SettingsError, match="in clear text"):
            load_settings(flags=exposed, environment=secret)
        for master in ("sc://spark:1/;use_ssl=true", "sc://127.0.0.1:1"):
            load_settings(flags={"spark.master": master}, environment=secret)
    load_settings(flags=exposed, environment=TOKEN)


def test_a_changed_section_keeps_its_secret() -> None:
    """A request that changes options of Spark must not lose or print the token."""
    loaded = load_settings(environment=TOKEN).settings
    changed = changed_settings(loaded, {"spark.cores": 3})
    assert changed.spark.token is loaded.spark.token
    assert "of-the-server" not in changed.model_dump_json() + repr(changed)
