"""Removes entries and checkpoints of a log whose time is over, without the list of files.

As deltalake does it: everything before the newest checkpoint by which all versions can be read
that are younger than `delta.logRetentionDuration`. The checkpoint's own entry stays.
"""

import re

from penstock.pipeline.checkpoint_files import newest_checkpoint
from penstock.pipeline.log_replay import ENTRY, LOG, LogReplay, seconds_of
from penstock.pipeline.storage import StoredFile

_KEPT = "delta.logRetentionDuration"
_KEPT_DEFAULT = "interval 30 days"
_CLEANS_UP = "delta.enableExpiredLogCleanup"
# Entries, checkpoints of every kind, and checksums of versions.
_OF_A_VERSION = re.compile(r"(\d{20})\.(?:json|crc|checkpoint\..*)")


def clean_up_log(found: LogReplay, now_ms: int) -> int:
    """How many files were removed."""
    configuration = found.configuration
    if configuration.get(_CLEANS_UP, "true").lower() == "false":
        return 0
    kept_s = seconds_of(configuration.get(_KEPT, _KEPT_DEFAULT))
    files = found.storage.files_in(LOG)
    gone = _over(files, now_ms - round(kept_s * 1000))
    found.storage.delete_files(gone)
    return len(gone)


def _over(files: list[StoredFile], oldest_ms: int) -> list[str]:
    """The files to remove. Pure."""
    names = {one.path.rpartition("/")[2]: one for one in files}
    entries = {
        int(is_entry[1]): one for name, one in names.items() if (is_entry := ENTRY.fullmatch(name))
    }
    if not entries:
        return []
    young = [version for version, one in entries.items() if one.modified_at_ms >= oldest_ms]
    # The newest version is always read.
    oldest_needed = min([max(entries), *young])
    before = [
        name
        for name in names
        if (of_version := _OF_A_VERSION.fullmatch(name)) and int(of_version[1]) <= oldest_needed
    ]
    place = newest_checkpoint(before)
    if place is None:
        return []
    return [
        names[name].path
        for name in before
        if (of_version := _OF_A_VERSION.fullmatch(name)) and int(of_version[1]) < place.version
    ]
