"""Start Spark for a command, without the lines that Java and Spark print at every start.

They mean nothing and look like faults, so they are shown only if the start fails. What a user's own
code prints later, in a process that Spark starts, is for the user and is shown.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any

from penstock.settings.sections import SparkSettings

# Where the start ends in what was printed.
_END = b"-- the start of a program ends here --\n"
_END_WITHIN_S = 5.0


def quiet_session(spark: SparkSettings) -> Any:
    """A session for a command that tells by itself what failed and why.

    Spark would log the stack of it as well, several times. A Connect server logs elsewhere.
    """
    from penstock.pipeline.session import start_session  # noqa: PLC0415 -- slow: PySpark

    if not spark.uses_connect_server:
        options = {**spark.options, "spark.log.level": "FATAL"}
        spark = spark.model_copy(update={"options": options})
    with quiet_start():
        return start_session(spark)


@contextmanager
def quiet_start() -> Iterator[None]:
    """Programs that are started within write to a pipe in place of stderr, for all their life.

    What this process itself says goes on to stderr.
    """
    sys.stderr.flush()
    reading, writing = os.pipe()
    kept = os.dup(2)
    start = _Start(reading, kept)
    os.dup2(writing, 2)
    try:
        with os.fdopen(os.dup(kept), "w", buffering=1) as own, redirect_stderr(own):
            yield
    except BaseException:
        start.end(writing)
        start.show()
        raise
    finally:
        os.dup2(kept, 2)
        start.end(writing)
        os.close(writing)


class _Start:
    """Reads the pipe, and keeps to itself what comes before the start is over."""

    def __init__(self, reading: int, shown_at: int) -> None:
        self._is_over = threading.Event()
        self._unsaid: list[bytes] = []
        self._shown_at = shown_at
        # It ends with the last program that writes there.
        threading.Thread(target=self._read, args=(reading,), daemon=True).start()

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, "rb") as lines:
            for line in lines:
                if line == _END:
                    self._is_over.set()
                elif self._is_over.is_set():
                    os.write(self._shown_at, line)
                else:
                    self._unsaid.append(line)

    def end(self, writing: int) -> None:
        """What is printed from now on is shown."""
        if not self._is_over.is_set():
            os.write(writing, b"\n" + _END)
            self._is_over.wait(_END_WITHIN_S)

    def show(self) -> None:
        os.write(self._shown_at, b"".join(self._unsaid).removesuffix(b"\n"))
