"""Reads the controller's status file, for `status`, `plan`, `history` and the demo.

The file stays when the controller ends: `age_s` and `is_stale` show how old it is.
"""

import json
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from penstock.controller.core.snapshot import seconds_behind
from penstock.errors import PenstockError
from penstock.model import TopicPartition
from penstock.model.sentences import age_text
from penstock.settings import Settings
from penstock.settings.sections import LakeSettings
from penstock.state_directory import DirectoryHolder, holder_of

STATUS_NAME = "status.json"
# The controller writes every second.
STALE_AFTER_S = 5.0


def status_file(settings: Settings) -> Path:
    return Path(settings.controller.directory).absolute() / STATUS_NAME


def read_status(settings: Settings) -> dict[str, Any]:
    """The newest snapshot, with how old it is."""
    file = status_file(settings)
    try:
        status: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        status["age_s"] = max(0.0, time.time() - status["at_unix_ms"] / 1000)
        status["is_stale"] = is_stale(status)
        _age(status)
        holder = holder_of_group(settings) if status["is_stale"] else None
        is_ending = holder is not None and holder.is_ending
        status["starts_now"] = None if holder is None or is_ending else holder.name
        status["stops_now"] = holder.name if holder is not None and is_ending else None
    except FileNotFoundError:
        raise _no_status(file, holder_of_group(settings)) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PenstockError(f"{file} cannot be read: {error}.") from error
    return status


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


def _no_status(file: Path, holder: DirectoryHolder | None) -> PenstockError:
    if holder is None:
        return PenstockError(
            f"No controller has written {file}.",
            remedy="Start `penstock up`, or name its directory: --set controller.directory=DIR.",
        )
    if holder.is_ending:
        return PenstockError(
            f"No controller has written {file}, and the group is being stopped ({holder.name}).",
            remedy="Start `penstock up` again when it has ended.",
        )
    return PenstockError(
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
        if one.get("behind_is_at_most")
    }
    offsets = _ledger_offsets(lake, guessed, status["topic_ids"]) if guessed else {}
    for partition, offset in offsets.items():
        one = guessed[partition]
        start = max(one["start_offset"] or 0, offset or 0)
        records = max(0, one["end_offset"] - start)
        share = records / one["behind_records"]
        status["behind_records"] += records - one["behind_records"]
        if status["behind_bytes"] is not None and one["behind_bytes"] is not None:
            status["behind_bytes"] -= round(one["behind_bytes"] * (1 - share))
            status["behind_s"] = seconds_behind(
                status["behind_bytes"], status["written_bytes_per_s"]
            )
            one["behind_bytes"] = round(one["behind_bytes"] * share)
        one |= {"behind_records": records, "behind_is_at_most": False}
    if offsets.keys() == guessed.keys():
        status["behind_is_at_most"] = False
    return status


def _ledger_offsets(
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


def require_news(status: dict[str, Any]) -> None:
    """Refuse a stale status, for commands whose answer would be wrong with it."""
    if is_stale(status):
        raise PenstockError(
            silence_text(status),
            remedy="Check that it runs; `penstock status` shows what was last known.",
        )
