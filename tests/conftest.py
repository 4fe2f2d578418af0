"""What all tests share: real parts, started once, and a clean environment."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from penstock.jars import JarSet, fetch
from penstock.laboratory.broker import EmbeddedKafka
from penstock.settings.sections import SparkSettings

# Every worker of every run reads this file: what takes long to import waits until it is needed.
if TYPE_CHECKING:
    from kit.kubernetes.kubernetes_cluster import Cluster
    from penstock.pipeline.connect_server import ConnectServer

# Spark servers of the tests live for minutes: a JVM that compiles its code once, and not again when
# it has run often, starts twice as quickly on a busy machine (decision 0190).
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Speed is not what a test checks: an example may take long on a machine that others use too.
hypothesis.settings.register_profile("penstock", deadline=None)
hypothesis.settings.load_profile("penstock")


# A test with real parts is ended when it hangs and never because it is slow: on a machine that
# gives it a fifth of a processor, a test of half a minute takes longer than what others have.
REAL_PARTS = ("broker", "spark", "browser", "live", "kubernetes")
HANGS_AFTER_S = 900.0


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what may take longest, so that no worker waits for another at the end."""
    items.sort(key=_timeout_s, reverse=True)
    for item in items:
        has_real_parts = any(item.get_closest_marker(part) for part in REAL_PARTS)
        if has_real_parts and _timeout_s(item) < HANGS_AFTER_S:
            item.add_marker(pytest.mark.timeout(HANGS_AFTER_S), append=False)


def _timeout_s(item: pytest.Item) -> float:
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0]) if mark is not None and mark.args else 0.0


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test never sees the settings of the user who runs it."""
    kept = {
        "PENSTOCK_CACHE",
        "PENSTOCK_JAR_REPOSITORY",
        "PENSTOCK_TEST_KUBECONFIG",
    }
    for name in set(os.environ) - kept:
        if name.startswith("PENSTOCK_"):
            monkeypatch.delenv(name)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MiB; where none can be mounted the test is skipped with the reason."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture(autouse=True)
def _connect_mode_stays() -> Iterator[None]:
    """A test that starts a JVM in this process leaves Connect mode, which other tests need."""
    names = ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    yield
    os.environ.update(kept)


@pytest.fixture(scope="session")
def broker_jars() -> None:
    """The broker's jars, fetched if this is the first run on the machine."""
    fetch(JarSet.BROKER)


@pytest.fixture(scope="session")
def kafka(broker_jars: None) -> Iterator[EmbeddedKafka]:
    """One real broker for all tests that only add to it: give topics names of your own."""
    with EmbeddedKafka() as running:
        yield running


@pytest.fixture(scope="session")
def spark_jars() -> None:
    """The connector's jars, fetched if this is the first run on the machine."""
    fetch(JarSet.SPARK)


@pytest.fixture(scope="session")
def spark_server(spark_jars: None) -> Iterator["ConnectServer"]:
    """One real Spark Connect server for all tests."""
    from penstock.pipeline.connect_server import ConnectServer  # noqa: PLC0415 -- imports Spark

    # A session that a test holds may wait for its next test longer than a consumer's would.
    options = {"spark.connect.session.manager.defaultSessionTimeout": "3h"}
    with ConnectServer(SparkSettings(options=options)) as running:
        yield running


@pytest.fixture(scope="session")
def simulated_cluster() -> Iterator["Cluster"]:
    """A real control plane whose pods are simulated."""
    from kit.kubernetes.kubernetes_cluster import named_or_own_cluster  # noqa: PLC0415 -- as above

    with named_or_own_cluster(real_pods=False) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def pods_cluster() -> Iterator["Cluster"]:
    """A real control plane with a real node: pods are processes."""
    from kit.kubernetes.kubernetes_cluster import named_or_own_cluster  # noqa: PLC0415 -- as above

    with named_or_own_cluster(real_pods=True) as cluster:
        yield cluster
