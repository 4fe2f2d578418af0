"""Does something again and again on a thread while a test goes on."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def in_a_loop(act: Callable[[], object], pause_s: Callable[[], float]) -> Iterator[None]:
    """Act, pause, and so on; what it raises is raised here at the end."""
    stop = threading.Event()
    raised: list[BaseException] = []

    def loop() -> None:
        while not stop.wait(pause_s()):
            try:
                act()
            except BaseException as error:  # noqa: BLE001 -- raised again below
                raised.append(error)
                return

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if raised:
        raise raised[0]
