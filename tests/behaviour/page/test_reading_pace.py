"""How often the page reads the group's state: by what a reading costs, not by how long it takes."""

import asyncio
import time
from typing import Any

from kit.page.made_up_group import MadeUpGroup
from kit.page.record import as_read
from penstock.page.process.group_watching import READ_EVERY_S, GroupWatching, pause_s


def test_a_reading_that_waits_does_not_put_off_the_next_one() -> None:
    """On a busy machine each took 0.1 s, so that a killed consumer was shown after five seconds."""
    snapshot = as_read(MadeUpGroup().step())

    def read() -> dict[str, Any]:
        time.sleep(0.3)  # takes time and no processor, as a slow broker does
        return snapshot

    watching = GroupWatching(read, group="group")
    took_s = asyncio.run(watching.look())
    assert watching.problem is None
    assert took_s < 0.3
    assert pause_s(min(took_s, 0.01)) < READ_EVERY_S
