"""A status that holds anything: the page says what is wrong, and goes on with the next good one."""

import asyncio
import copy
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.controller.story import TWO_CONSUMERS, after
from kit.controller.story_state import state_of
from kit.page.made_up_group import MadeUpGroup
from kit.page.record import as_read
from kit.page.served import Served, served
from penstock.controller.core.snapshot import snapshot as snapshot_of
from penstock.errors import PenstockError
from penstock.page.core.answers import Answers, HistoryQuery, TimelineQuery
from penstock.page.core.listing import PartitionQuery
from penstock.page.core.status_shape import StatusNotUnderstoodError, require_shape
from penstock.page.process.group_watching import GroupWatching
from penstock.page.process.routes import json_bytes
from penstock.page.process.server import run_page
from penstock.settings import Settings
from penstock.settings.sections import PageSettings

GROUP = MadeUpGroup(consumers=3, partitions=8)
GOOD: tuple[dict[str, Any], ...] = tuple(as_read(GROUP.step()) for _ in range(3))
WRONG: st.SearchStrategy[Any] = st.sampled_from(
    [None, [], {}, "x", 10**20, -1, 0.5, True, [1], ["x-1"], {"x": 1}, [{}]]
)


class Statuses:
    """Read one after the other; the last one stays."""

    def __init__(self, *given: object) -> None:
        self._given = list(given)

    def __call__(self) -> Any:
        one = self._given.pop(0) if len(self._given) > 1 else self._given[0]
        if isinstance(one, BaseException):
            raise one
        return copy.deepcopy(one)


def looked(*given: object) -> GroupWatching:
    """After a look at each."""

    async def look() -> GroupWatching:
        watching = GroupWatching(Statuses(*given), group="g")
        for _ in given:
            await watching.look()
        return watching

    return asyncio.run(look())


def all_answers(watching: GroupWatching) -> bytes:
    view = watching.watch.view
    assert view is not None
    ask = Answers(watching.watch, view, "g")
    answers = [
        ask.status(),
        ask.topics(),
        ask.consumers(with_partitions=True),
        ask.partitions(PartitionQuery(sort="behind")),
        ask.history(HistoryQuery()),
        ask.timeline(TimelineQuery()),
        *(ask.consumer(one) for one in view.consumer_ids()),
    ]
    plan = ask.plan(with_partitions=True)
    return b"".join(json_bytes(one) for one in [*answers, plan] if one is not None)


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in GOOD[1].items() if key != name}


@pytest.mark.parametrize(
    "damaged",
    [
        GOOD[1] | {"partitions": []},
        without("question"),
        GOOD[1] | {"question": {"load_bytes_per_s": {}}},
        GOOD[1] | {"carried_bytes": "many"},
        GOOD[1] | {"partitions": {"orders-x": GOOD[1]["partitions"]["orders-0"]}},
        GOOD[1] | {"at_unix_ms": 10**20},
        GOOD[1] | {"capacity": {**GOOD[1]["capacity"], "source": 7}},
        {},
        [],
        OSError("no disk"),
    ],
)
def test_what_is_wrong_is_said_and_the_next_good_one_is_shown(damaged: object) -> None:
    """The last good figures stay, as old ones, until there are new ones."""
    watching = looked(GOOD[0], damaged)
    view = watching.watch.view
    assert watching.problem is not None
    assert "cannot be understood" in watching.problem
    assert view is not None
    assert (view.snapshot["is_stale"], view.at_unix_ms) == (True, GOOD[0]["at_unix_ms"])
    assert all_answers(watching)
    healed = looked(GOOD[0], damaged, GOOD[2])
    assert healed.problem is None
    assert healed.watch.view is not None
    assert not healed.watch.view.snapshot["is_stale"]
    assert healed.watch.view.carried
    assert all_answers(healed)


def test_a_plan_that_cannot_be_made_is_none() -> None:
    """Its question lacks something that only the packer needs: all else is shown."""
    asked = {k: v for k, v in GOOD[0]["question"].items() if k != "partitions_per_consumer_max"}
    watching = looked(GOOD[0] | {"question": asked})
    assert watching.problem is None
    assert watching.watch.plan is None


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = [path] if path else []
    for key, one in inner:
        found += places(one, (*path, key)) if isinstance(one, dict | list) else [(*path, key)]
    return found


PLACES = places(GOOD[1])


@given(st.sampled_from(PLACES), st.one_of(WRONG, st.just(...)))
def test_damage_at_any_place_is_said_or_does_no_harm(place: tuple[Any, ...], wrong: Any) -> None:
    """Nothing is shown as new of which an answer cannot be made."""
    damaged = copy.deepcopy(GOOD[1])
    holder = damaged
    for key in place[:-1]:
        holder = holder[key]
    if wrong is ...:
        del holder[place[-1]]
    else:
        holder[place[-1]] = copy.deepcopy(wrong)
    watching = looked(GOOD[0], damaged)
    view = watching.watch.view
    assert view is not None
    assert view.snapshot["is_stale"] == (watching.problem is not None) or damaged.get("is_stale")
    assert all_answers(watching)
    watching = looked(GOOD[0], damaged, GOOD[2])
    assert watching.problem is None
    assert all_answers(watching)


def test_what_a_controller_writes_is_whole() -> None:
    """Of a group that is new, and of one in the middle of a move."""
    moving = after(
        *TWO_CONSUMERS,
        "3000 ms pass",
        "speeds orders-0=40 orders-1=80 orders-2=10",
        "consumer 1 reports orders-0@1.1 orders-1@1.2, behind_log_bytes=65 behind_records=13",
        "tick +500",
        "packed 1: orders-0; 2: orders-1 orders-2",
    )
    for state in (state_of(after(*TWO_CONSUMERS)), state_of(moving)):
        status = json.loads(json.dumps(snapshot_of(state, 1_000, is_degraded=False)))
        require_shape(status | {"age_s": 0.5, "is_stale": False})
    with pytest.raises(StatusNotUnderstoodError, match=r"status\.is_stale"):
        require_shape(status | {"age_s": 0.5})


def test_a_running_page_says_that_a_status_is_damaged(tmp_path: Path) -> None:
    """It is stale and says why, for as long as that lasts."""
    group = MadeUpGroup(consumers=3, partitions=8)
    with served(tmp_path / "group", "kafka.answer_timeout=1s", snapshot=group.step()) as page:
        page.write(group.step() | {"partitions": []})
        stale = _until(page, is_stale=True)
        assert "status.partitions" in stale["silence"]
        page.write(group.step())
        assert _until(page, is_stale=False)["silence"] is None


def _until(page: Served, *, is_stale: bool) -> dict[str, Any]:
    end_s = time.monotonic() + 20
    while time.monotonic() < end_s:
        found: dict[str, Any] = page.ask("/v1/status").json["snapshot"]
        if found["is_stale"] == is_stale:
            return found
        time.sleep(0.05)
    raise AssertionError(found)


class Beyond(BaseException):
    """No error of a status: nothing handles it."""


def test_a_page_that_no_longer_watches_ends() -> None:
    """With an error: what it serves would stay as it is, and look new."""
    settings = Settings(page=PageSettings(address="127.0.0.1:0"))
    with pytest.raises(PenstockError, match="stopped watching the group: Beyond"):
        run_page(settings, Statuses(Beyond()), say=lambda _: None)
