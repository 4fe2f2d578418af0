"""What is in force in a running group, as its operator sees and changes it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from kit.program import penstock
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka

pytestmark = [pytest.mark.broker, pytest.mark.timeout(400)]
BUSY_S = 180.0
Found = TypeVar("Found")


def until(look: Callable[[], Found | None], what: str) -> Found:
    deadline_s = time.monotonic() + BUSY_S
    while time.monotonic() < deadline_s:
        found = look()
        if found is not None:
            return found
        time.sleep(0.1)  # other processes announce nothing
    raise AssertionError(f"not within {BUSY_S:g} s: {what}")


class Operator:
    """Works in the group's folder, on its `penstock.yaml`."""

    def __init__(self, folder: Path, kafka: EmbeddedKafka, prefix: str) -> None:
        self.folder = folder
        self._kafka = kafka
        self._prefix = prefix
        Administration(kafka.settings).create_topic(f"{prefix}-data", partitions=1)

    def writes(self, capacity: str, columns: list[str]) -> None:
        """Consumers wait for a Spark server that is not there: they carry nothing here."""
        content = {
            "kafka": {"bootstrap_servers": self._kafka.bootstrap_servers},
            "topics": {"prefix": self._prefix},
            "spark": {"master": "sc://127.0.0.1:1"},
            "monitor": {"include": [f"{self._prefix}-data"]},
            "packing": {"capacity": capacity},
            "lake": {"tables": {f"{self._prefix}-data": {"columns": columns}}},
        }
        (self.folder / "penstock.yaml").write_text(yaml.safe_dump(content))

    def asks(self, *arguments: str) -> str:
        """What the program says, whatever its exit code."""
        done = penstock(*arguments, cwd=self.folder)
        return done.stdout + done.stderr

    def does(self, *arguments: str) -> str:
        done = penstock(*arguments, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def sees(self, option: str) -> dict[str, Any]:
        done = penstock("settings", "-o", "json", cwd=self.folder)
        assert done.returncode == 0, done.stderr
        (row,) = [one for one in json.loads(done.stdout) if one["option"] == option]
        found: dict[str, Any] = row
        return found

    @contextmanager
    def runs(self, *given: str) -> Iterator[Path]:
        """A command that runs until its end is asked for; gives its log."""
        log = self.folder / f"{given[0]}.log"
        with log.open("wb") as output:
            command = [sys.executable, "-m", "penstock", *given]
            process = subprocess.Popen(command, cwd=self.folder, stdout=output, stderr=output)
        try:
            yield log
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(BUSY_S)

    def ends_consumers(self) -> None:
        for note in self.folder.glob("*/consumer-*/deployment.json"):
            process = json.loads(note.read_text())["process"]
            if process and is_running(process["pid"]):
                os.kill(process["pid"], signal.SIGKILL)

    def consumer(self, other_than: int = 0) -> int | None:
        """The process of the newest consumer, once it runs."""
        for note in sorted(self.folder.glob("*/consumer-*/deployment.json"), reverse=True):
            process = json.loads(note.read_text())["process"]
            if process and process["pid"] != other_than and is_running(process["pid"]):
                return int(process["pid"])
        return None


def is_running(pid: int) -> bool:
    """Whether it is a consumer by now, and no zombie."""
    try:
        return b"consumer" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def columns_of(pid: int) -> list[str]:
    """The columns in the settings with which a consumer was started."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    last = len(words) - 1 - words[::-1].index("--settings")
    content = yaml.safe_load(Path(words[last + 1]).read_text())
    (table,) = content["lake"]["tables"].values()
    found: list[str] = table["columns"]
    return found


def test_what_is_in_force_is_shown_rolled_out_and_taken_back(
    kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    """A request, an edited file and a flag: the later one wins, and each is said."""
    operator = Operator(tmp_path, kafka, "in-force")
    old, new = ["id"], ["id", "name"]
    operator.writes("5MB/s", old)
    with operator.runs("up"):
        first = until(operator.consumer, "a consumer runs")
        assert columns_of(first) == old
        row = operator.sees("packing.capacity")
        assert (row["value"], row["origin"]) == ("5MB/s", "penstock.yaml")
        operator.does("service", "send", "change-settings", "packing.capacity=700kB/s")
        row = until(
            lambda: row if (row := operator.sees("packing.capacity"))["value"] != "5MB/s" else None,
            "the change is shown",
        )
        assert row["value"] == "700kB/s"
        assert row["origin"].startswith("request change-settings-")
        assert " UTC by " in row["origin"]
        # The file is edited; a consumer that dies comes back with what the group was started with.
        operator.writes("9MB/s", new)
        os.kill(first, signal.SIGKILL)
        again = until(lambda: operator.consumer(other_than=first), "the consumer is back")
        assert columns_of(again) == old
        assert operator.sees("packing.capacity")["not_in_force"] == "9MB/s (penstock.yaml)"
        # All of the file is rolled out; it is later than the request. Without a Spark nothing can
        # be carried, so it is not done before the command's time is over.
        assert "accepted" in operator.asks("settings", "roll-out", "--wait", "20s")
        replaced = until(lambda: operator.consumer(other_than=again), "it is replaced")
        assert columns_of(replaced) == new
        row = operator.sees("packing.capacity")
        assert (row["value"], row["origin"]) == ("9MB/s", "penstock.yaml")
        operator.does("service", "send", "change-settings", "packing.capacity=1MB/s")
    # The same settings: the change holds, and it is said.
    with operator.runs("up") as log:
        until(lambda: "still holds" in log.read_text() or None, "up says what holds")
        assert "packing.capacity 1MB/s (request change-settings-" in log.read_text()
        assert "as in the settings again" in operator.does("settings", "drop", "--all")
        operator.does("service", "send", "change-settings", "packing.capacity=3MB/s")
    # A flag that is new wins over the request, and it is said.
    with operator.runs("up", "--set", "packing.capacity=2MB/s") as log:
        until(lambda: "dropped: packing.capacity" in log.read_text() or None, "up says it")
        row = operator.sees("packing.capacity")
        assert (row["value"], row["origin"]) == ("2MB/s", "flag for packing.capacity")


def test_consumers_that_outlived_the_controller_get_the_new_file(
    kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    """A controller that starts again with an edited file replaces them in order."""
    operator = Operator(tmp_path, kafka, "outlived")
    operator.writes("5MB/s", ["id"])
    operator.does("topics", "create")
    try:
        with operator.runs("monitor"):
            with operator.runs("controller"):
                first = until(operator.consumer, "a consumer runs")
            assert is_running(first)
            operator.writes("5MB/s", ["id", "name"])
            with operator.runs("controller"):
                second = until(lambda: operator.consumer(other_than=first), "it is replaced")
                assert columns_of(second) == ["id", "name"]
                until(lambda: None if is_running(first) else True, "the first one ends")
    finally:
        operator.ends_consumers()
