"""A consumer on a Connect server runs with Spark's client alone: no JVM, no bridge, no pictures."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import SettingsError
from penstock.pipeline.session import start_session
from penstock.settings.sections import SparkSettings

ROOT = Path(__file__).parents[3]
# What is not installed cannot be imported. `pyspark.core` is how PySpark tells client from whole.
THIN = """
import re, sys
from importlib.metadata import packages_distributions
installed = set(sys.argv[1:])
for module, names in packages_distributions().items():
    if not installed & {re.sub("[-_.]+", "-", name).lower() for name in names}:
        sys.modules[module] = None
sys.modules["pyspark.core"] = None
import penstock.cli.consumer, penstock.consumer.process
from pyspark.sql.connect.client.retries import DefaultPolicy
"""


def locked(name: str) -> set[str]:
    text = (ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z0-9-]+)==\S+", text, re.MULTILINE))


def test_a_consumer_imports_nothing_that_a_thin_install_lacks() -> None:
    """With all else hidden, the consumer and Spark's client are imported all the same."""
    installed = {*locked("thin") - {"pyspark-client"}, "pyspark", "penstock"}
    done = subprocess.run(
        [sys.executable, "-c", THIN, *sorted(installed)],
        capture_output=True,
        text=True,
        check=False,
    )
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
