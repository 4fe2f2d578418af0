"""One live group for all tests here, because starting one takes half a minute."""

from collections.abc import Iterator

import pytest

from kit.group.live_group import LiveGroup, made_group
from kit.processes import processes_naming
from penstock.jars import USUAL_SETS, fetch


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveGroup]:
    for jar_set in USUAL_SETS:
        fetch(jar_set)
    folder = tmp_path_factory.mktemp("live")
    group = made_group(folder)
    with group:
        yield LiveGroup(group)
    assert processes_naming(str(folder)) == []
