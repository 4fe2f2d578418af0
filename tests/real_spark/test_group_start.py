"""What `penstock up` does before there is anything to carry."""

import time
from pathlib import Path

import pytest

from kit.group.live_group import made_group
from kit.processes import children_of, processes_naming

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def test_its_spark_server_is_warm_before_the_first_consumer(
    broker_jars: None, spark_jars: None, tmp_path: Path
) -> None:
    """Python workers come up with no record to carry; at the end nothing is left."""
    with made_group(tmp_path) as group:
        assert group.spark_server is not None
        assert group.spark_server.process is not None
        server = group.spark_server.process.pid
        deadline_s = time.monotonic() + 60
        while not children_of(server, "pyspark.daemon"):
            assert time.monotonic() < deadline_s, "it was not warmed up"
            time.sleep(0.2)  # nothing tells us; asking is the only way to know
    assert processes_naming(str(tmp_path)) == []
