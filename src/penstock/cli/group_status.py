"""Reads the status of a group, for `status`, `plan`, `history`, `settings` and the page.

The controller writes it twice: to a file in its folder, and to `<prefix>-status` for everybody who
may read that topic. The file of this folder is used while it is fresh; else Kafka is asked, and the
newer of the two counts. Both stay when the controller ends: `age_s` and `is_stale` show how old it
is, `source` where it comes from, and `source_problem` why Kafka could not be asked, if it should
have been. A status may have been damaged, or written by anybody: the one that counts is looked at
once, as a whole, so that no command fails on it later.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from penstock.controller.core.snapshot import seconds_behind
from penstock.errors import NotPermittedError, PenstockError, SettingsError
from penstock.kafka_io.failures import TopicMissingError
from penstock.kafka_io.status_topic import SeenStatus, StatusReader
from penstock.model import TopicPartition
from penstock.model.json_text import read_json
from penstock.model.sentences import age_text
from penstock.page.core.status_shape import StatusNotUnderstoodError, require_shape
from penstock.settings import Settings
from penstock.settings.sections import LakeSettings
from penstock.state_directory import DirectoryHolder, holder_of

STATUS_NAME = "status.json"
# The controller writes every second.
STALE_AFTER_S = 5.0
# A status that seems old only because two clocks differ is known by the next one that comes. Clocks
# that differ by more than this are not expected.
_CLOCKS_DIFFER_S_MAX = 600.0


class NoStatusError(PenstockError):
    """No controller has written a status, here or in Kafka."""


def status_file(settings: Settings) -> Path:
    return Path(settings.controller.directory).absolute() / STATUS_NAME


def read_status(settings: Settings) -> dict[str, Any]:
    """The newest status, with how old it is. Who asks again and again keeps a StatusSource."""
    with closing(StatusSource(settings)) as source:
        return source.read()


class StatusSource:
    """Reads the newest status as often as wanted; used by one thread."""

    def __init__(
        self,
        settings: Settings,
        *,
        reader: Callable[[Settings], StatusReader] = lambda settings: StatusReader(
            settings.kafka, settings.topics, settings.lake.group
        ),
    ) -> None:
        self._settings = settings
        self._make_reader = reader
        self._reader: StatusReader | None = None
        self._has_waited = False
        # What is in force in the group, as its controller said it beside the status last read.
        self.settings_in_force: dict[str, Any] | None = None

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
            self._has_waited = False

    def read(self) -> dict[str, Any]:
        """NoStatusError when there is none anywhere; StatusNotUnderstoodError for a damaged one."""
        in_file = self._in_file()
        if in_file is not None and not is_stale(in_file):
            return self._finished(in_file)
        in_kafka, problem = self._in_kafka()
        found = _newer(in_file, in_kafka)
        if found is None:
            if isinstance(problem, NotPermittedError | SettingsError):
                raise problem
            raise _no_status(self._settings, problem)
        if problem is not None:
            found["source_problem"] = problem.message
        return self._finished(found)

    def _in_file(self) -> dict[str, Any] | None:
        """None where there is none, or one of another group."""
        file = status_file(self._settings)
        try:
            status: dict[str, Any] = read_json(file.read_text(encoding="utf-8"))
            names = (self._settings.lake.group, self._settings.topics.prefix)
            if (status.get("group", names[0]), status.get("prefix", names[1])) != names:
                return None
            age_s = max(0.0, time.time() - status["at_unix_ms"] / 1000)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise PenstockError(f"{file} cannot be read: {error}.") from error
        return status | {"source": "file", "source_problem": None, "age_s": age_s}

    def _in_kafka(self) -> tuple[dict[str, Any] | None, PenstockError | None]:
        """The status, or why there is none."""
        try:
            if self._reader is None:
                self._reader = self._make_reader(self._settings)
            seen = self._reader.newest()
            if seen is not None and _may_be_newer(seen) and not self._has_waited:
                self._has_waited = True
                seen = self._reader.newest(wait_s=STALE_AFTER_S)
        except PenstockError as error:
            self.close()
            return None, error
        except ValueError as error:
            topic = self._settings.topics.names.status
            return None, PenstockError(f"The status on {topic} cannot be read: {error}.")
        if seen is None:
            return None, None
        self.settings_in_force = seen.settings_in_force
        source = {"source": "kafka", "source_problem": None, "age_s": seen.age_s}
        return seen.status | source, None

    def _finished(self, status: dict[str, Any]) -> dict[str, Any]:
        status["is_stale"] = is_stale(status)
        try:
            require_shape(status)
        except StatusNotUnderstoodError as error:
            raise StatusNotUnderstoodError(
                f"{self._place(status)}: {error.message}", remedy=error.remedy
            ) from error
        _age(status)
        holder = holder_of_group(self._settings) if status["is_stale"] else None
        is_ending = holder is not None and holder.is_ending
        status["starts_now"] = None if holder is None or is_ending else holder.name
        status["stops_now"] = holder.name if holder is not None and is_ending else None
        return status

    def _place(self, status: dict[str, Any]) -> str:
        if status["source"] == "file":
            return str(status_file(self._settings))
        return f"The topic {self._settings.topics.names.status}"


def _may_be_newer(seen: SeenStatus) -> bool:
    if seen.status.get("has_ended"):
        return False
    return STALE_AFTER_S < seen.age_s < _CLOCKS_DIFFER_S_MAX


def _newer(
    in_file: dict[str, Any] | None, in_kafka: dict[str, Any] | None
) -> dict[str, Any] | None:
    if in_file is None or in_kafka is None:
        return in_file or in_kafka
    return in_kafka if _written(in_kafka) > _written(in_file) else in_file


def _written(status: dict[str, Any]) -> tuple[float, ...]:
    """In which order they were written. Neither has been looked at: what is no number is first."""
    told = (status.get("controller_epoch", 0), status.get("at_unix_ms"))
    return tuple(one if isinstance(one, int | float) else -1 for one in told)


def _age(status: dict[str, Any]) -> None:
    """Count ages up to now: the file has them as they were when it was written."""
    passed_ms = round(status["age_s"] * 1000)
    for decision in status["history"]:
        decision["age_ms"] += passed_ms
        decision["first_age_ms"] += passed_ms
    if status["measurement_age_ms"] is not None:
        status["measurement_age_ms"] += passed_ms


def is_stale(status: dict[str, Any]) -> bool:
    """Whether the controller has stopped writing: it ended, or is being restarted."""
    return bool(status.get("has_ended") or status["age_s"] > STALE_AFTER_S)


def holder_of_group(settings: Settings) -> DirectoryHolder | None:
    """The `penstock up` that runs in the folder: where no controller writes, it starts or stops."""
    return holder_of(Path(settings.controller.directory).absolute() / "up")


def _no_status(settings: Settings, problem: PenstockError | None) -> PenstockError:
    file, topic = status_file(settings), settings.topics.names.status
    holder = holder_of_group(settings)
    if holder is None:
        why = f"has no status of group {settings.lake.group}"
        if isinstance(problem, TopicMissingError):
            why = "does not exist"
        elif problem is not None:
            why = f"cannot be read: {problem.message.rstrip('.')}"
        return NoStatusError(
            f"No controller has written {file}, and the topic {topic} {why}.",
            remedy="Start `penstock up`, or name where it runs: kafka.bootstrap_servers, "
            "topics.prefix and lake.group, or its directory: --set controller.directory=DIR.",
        )
    if holder.is_ending:
        return NoStatusError(
            f"No controller has written {file}, and the group is being stopped ({holder.name}).",
            remedy="Start `penstock up` again when it has ended.",
        )
    return NoStatusError(
        f"No controller has written {file} yet: it is being started ({holder.name}).",
        remedy="Ask again in a moment.",
    )


def silence_text(status: dict[str, Any]) -> str:
    """Why there is no news: it was stopped, is being stopped or started, or is silent."""
    ago = age_text(status["age_s"])
    if status.get("stops_now"):
        return f"The group is being stopped ({status['stops_now']})."
    if status.get("starts_now"):
        return f"The group is being started ({status['starts_now']})."
    if status.get("has_ended"):
        return f"The controller was stopped in order {ago} ago."
    return f"The controller has not reported for {ago}."


def with_ledger(status: dict[str, Any], lake: LakeSettings) -> dict[str, Any]:
    """The status, with the lake's ledger where the controller does not know how far it is carried.

    The controller may have no way to the lake, so it counts the whole log of a partition that no
    consumer has told it about. Without a way to the lake here, that stays the most that can wait.
    """
    guessed = {
        TopicPartition.parse(name): one
        for name, one in status["partitions"].items()
        if _is_guessed(one) and status["behind_records"] is not None
    }
    ids = status.get("topic_ids", {})
    offsets = ledger_offsets(lake, guessed, ids) if guessed else {}
    for partition, offset in offsets.items():
        one = guessed[partition]
        start = max(one.get("start_offset") or 0, offset or 0)
        records = max(0, one["end_offset"] - start)
        share = records / one["behind_records"]
        status["behind_records"] += records - one["behind_records"]
        if status["behind_bytes"] is not None and one.get("behind_bytes") is not None:
            status["behind_bytes"] -= round(one["behind_bytes"] * (1 - share))
            status["behind_s"] = seconds_behind(
                status["behind_bytes"], status["written_bytes_per_s"]
            )
            one["behind_bytes"] = round(one["behind_bytes"] * share)
        one |= {"behind_records": records, "behind_is_at_most": False}
    if offsets.keys() == guessed.keys():
        status["behind_is_at_most"] = False
    return status


def _is_guessed(one: dict[str, Any]) -> bool:
    """Whether the ledger may say that less waits in this partition."""
    is_counted = bool(one.get("behind_records")) and one.get("end_offset") is not None
    return bool(one.get("behind_is_at_most")) and is_counted


def ledger_offsets(
    lake: LakeSettings, partitions: Iterable[TopicPartition], topic_ids: dict[str, str]
) -> dict[TopicPartition, int | None]:
    """The next offsets that the lake has; none where it cannot be read from here."""
    try:
        from penstock.pipeline.lake_commit import LakeTable  # noqa: PLC0415 -- the same
        from penstock.pipeline.ledger import read_ledger  # noqa: PLC0415 -- slow: deltalake
    except ImportError:
        return {}
    if "://" not in lake.root and not Path(lake.root).exists():
        return {}  # nothing is carried yet, or the lake is on another machine
    known = {one: topic_ids[one.topic] for one in partitions if one.topic in topic_ids}
    return read_ledger(lake, known, None, partial(LakeTable, lake)).next_offsets
