"""Fixtures for tests that carry records with real Spark from a real broker."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.lake.delta_spark import DeltaSpark
from kit.lake.lake import Carrier, lake_settings
from penstock.laboratory.broker import EmbeddedKafka
from penstock.pipeline import Writer, start_session
from penstock.pipeline.connect_server import ConnectServer
from penstock.settings.sections import SparkSettings


@pytest.fixture(scope="session")
def spark_session(spark_server: ConnectServer) -> Iterator[Any]:
    """One session over the shared server."""
    session = start_session(SparkSettings(master=spark_server.master))
    yield session
    session.stop()


@pytest.fixture
def make_carrier(
    kafka: EmbeddedKafka, spark_server: ConnectServer, spark_session: Any, tmp_path: Path
) -> Callable[..., Carrier]:
    """Makes carriers that write to one lake of this test's own."""

    def make(consumer_id: int = 1, incarnation: int = 1, **lake: Any) -> Carrier:
        settings = lake_settings(kafka.settings, tmp_path / "lake", spark_server.master, **lake)
        return Carrier(settings, spark_session, Writer(consumer_id, incarnation))

    return make


@pytest.fixture(scope="session")
def delta_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeltaSpark]:
    """One Spark with delta-spark, as other users of a lake run it."""
    with DeltaSpark(tmp_path_factory.mktemp("delta-spark")) as running:
        yield running


@pytest.fixture
def kit_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that the test starts find the transformations of the kit.

    And whatever the tests themselves run with: a working tree may not be the one that is installed.
    """
    here = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", here, prepend=os.pathsep)
