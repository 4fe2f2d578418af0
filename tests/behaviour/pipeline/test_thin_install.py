"""A consumer on a Connect server runs with Spark's client alone: no JVM, no bridge, no pictures."""

import importlib.util

import pytest

from kit.extras import installed_with, locked, run_with_only
from penstock.errors import SettingsError
from penstock.pipeline.session import start_session
from penstock.settings.sections import SparkSettings


def test_a_consumer_imports_nothing_that_a_thin_install_lacks() -> None:
    """With all else hidden, the consumer and Spark's client are imported all the same."""
    modules = "penstock.cli.consumer, penstock.consumer.process"
    client = "from pyspark.sql.connect.client.retries import DefaultPolicy"
    done = run_with_only(installed_with("connect"), f"import {modules}\n{client}")
    assert done.returncode == 0, done.stderr


def test_a_thin_install_has_neither_spark_nor_pictures() -> None:
    """What makes the full image large stays out of the thin one, at the same versions otherwise."""
    thin, whole = locked("thin"), locked("runtime")
    assert not thin & {"pyspark", "py4j", "matplotlib", "kubernetes"}
    assert thin - whole == {"pyspark-client"}


def test_a_spark_of_its_own_is_refused_where_only_the_client_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thin image that is set to `local[2]` names the reason instead of failing in Spark."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "py4j" else found(name)
    )
    with pytest.raises(SettingsError, match="only Spark's client is installed"):
        start_session(SparkSettings(master="local[2]"))
