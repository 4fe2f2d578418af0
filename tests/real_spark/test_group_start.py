"""What `penstock up` does before there is anything to carry."""

import time
from pathlib import Path

import pytest

from kit.group.live_group import made_group
from kit.processes import children_of, command_lines, processes_naming
from penstock.pipeline.server_token import token_file

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def test_its_spark_server_is_warm_before_the_first_consumer(
    broker_jars: None, spark_jars: None, tmp_path: Path
) -> None:
    """Python workers come up with no record to carry; at the end nothing is left.

    The server's token is in no command line and in no file of the group.
    """
    with made_group(tmp_path) as group:
        assert group.spark_server is not None
        assert group.spark_server.process is not None
        server = group.spark_server.process.pid
        deadline_s = time.monotonic() + 240
        while not children_of(server, "pyspark.daemon"):
            assert time.monotonic() < deadline_s, "it was not warmed up"
            time.sleep(0.2)  # nothing tells us; asking is the only way to know
        kept = token_file(group.spark_server.port)
        token = kept.read_text(encoding="utf-8")
        assert not [one for one in command_lines().values() if token in one]
        files = [one for one in tmp_path.rglob("*") if one.is_file()]
        assert {"spark.log", "controller.log", "warm-up.log"} <= {one.name for one in files}
        assert not [one for one in files if token.encode() in _content(one)]
    assert not kept.exists()
    assert processes_naming(str(tmp_path)) == []


def _content(file: Path) -> bytes:
    """Nothing of a file that its process has replaced or removed meanwhile."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""
