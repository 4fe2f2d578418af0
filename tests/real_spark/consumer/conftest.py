"""A group of one test's own on the shared broker and the shared Spark server."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kit.consumer.consumers import Group, MakeGroup, group_of
from kit.lake.lake import new_topic_name
from penstock.laboratory.broker import EmbeddedKafka
from penstock.pipeline.connect_server import ConnectServer
from penstock.settings import Settings


@pytest.fixture
def make_group(
    kafka: EmbeddedKafka, spark_server: ConnectServer, tmp_path: Path
) -> Iterator[MakeGroup]:
    """Makes a group with its own control topics, lake and state directories."""
    with ExitStack() as stack:

        def make(**sections: Any) -> Group:
            settings = Settings.model_validate(
                {
                    "kafka": {"bootstrap_servers": kafka.bootstrap_servers},
                    "topics": {"prefix": new_topic_name("control"), "consumers_ahead": 1},
                    "spark": {"master": spark_server.master},
                    "lake": {"root": str(tmp_path / "lake")} | sections.pop("lake", {}),
                    **sections,
                }
            )
            return stack.enter_context(group_of(settings, tmp_path))

        yield make


@pytest.fixture
def group(make_group: MakeGroup) -> Group:
    """A group with nothing special about it."""
    return make_group()
