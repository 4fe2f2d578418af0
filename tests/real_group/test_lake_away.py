"""The lake is away for two minutes: consumers wait for it, and none is told to end.

The lake is in an object store whose server stands still (SIGSTOP): it takes connections and answers
nothing. Meanwhile a topic appears, so that starts wait for the ledger too.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.group.live_group import LiveGroup, made_group, working
from kit.lake.s3_server import BUCKET, S3Server, s3_for_tests
from penstock.jars import USUAL_SETS, JarSet, fetch
from real_group.test_standstills import harmed, standing_still

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.live,
    pytest.mark.timeout(600),
]

AWAY_S = 120.0
AFTER_S = 20.0


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[S3Server]:
    with s3_for_tests(tmp_path / "s3") as server:
        yield server


@pytest.fixture
def live(tmp_path: Path, s3: S3Server) -> Iterator[LiveGroup]:
    for jar_set in (*USUAL_SETS, JarSet.S3):
        fetch(jar_set)
    group = made_group(
        tmp_path,
        lake__root=f"s3://{BUCKET}/away",
        lake__storage_options=json.dumps(s3.storage_options),
        spark__object_store="s3",
        spark__options=json.dumps(s3.spark_options),
    )
    with group:
        yield LiveGroup(group)


def test_a_lake_that_is_away_ends_no_consumer(live: LiveGroup, s3: S3Server) -> None:
    """Neither those that carry nor those that have a partition to start."""
    live.administration.create_topic("before", partitions=6)
    live.converged({"before": 6})
    with live.loading("before=80kB/s", seconds=10):
        before = live.until(lambda status: working(status) >= 2, "two consumers at work")
    with live.loading("before=80kB/s", seconds=AWAY_S + AFTER_S):
        began_s = time.monotonic()
        live.administration.create_topic("meanwhile", partitions=6)
        with standing_still(live, s3.process, AWAY_S):
            pass
        assert time.monotonic() - began_s >= AWAY_S
    with live.loading("meanwhile=40kB/s", seconds=5):
        pass
    after = live.converged({"before": 6, "meanwhile": 6})
    assert harmed(before, after) == []
    live.exact("before", 6)
    live.exact("meanwhile", 6)
