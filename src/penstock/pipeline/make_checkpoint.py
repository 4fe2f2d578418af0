"""Makes a checkpoint of one table and cleans up its log; the program of a child process.

deltalake reads the list of files for it: the memory goes with the process. It is run as a file and
imports hardly anything of this package, so that it loads no module of Spark. Its request is one
JSON object on stdin and not its arguments: options of an object store may be secret, arguments are
not.
"""

import json
import sys
import time
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from penstock.processes.low_priority import come_after_batches

# A commit has its temporary file for milliseconds. If one is removed all the same, that commit is
# tried again.
_TEMPORARY_FILES_KEPT_S = 3600


# Up to so many rows deltalake makes the checkpoint, in at most 100 MB: to import what makes it
# piece by piece takes a quarter of a second and as much memory.
ROWS_FOR_DELTALAKE_MAX = 20_000


def make_checkpoint(uri: str, options: dict[str, str], rows: int) -> None:
    """A checkpoint of the newest version; then entries whose time is over are removed.

    Two processes may do this at once: they write the same file, each as a whole. `rows` are those
    of the checkpoint before.
    """
    if rows > ROWS_FOR_DELTALAKE_MAX:
        from penstock.pipeline.stream_checkpoint import made_at  # noqa: PLC0415 -- slow, see above

        if made_at(uri, options, time.time_ns() // 1_000_000):
            return
    table = DeltaTable(uri, storage_options=options or None)
    table.create_checkpoint()
    cleans_up = table.metadata().configuration.get("delta.enableExpiredLogCleanup", "true")
    if cleans_up.lower() != "false":
        table.cleanup_metadata()


def remove_temporary_files(log: Path, older_than_s: float, now_s: float) -> None:
    """What a commit or a checkpoint left behind when its process was killed."""
    for file in [*log.glob("_commit_*.json.tmp"), *log.glob("_checkpoint_*.parquet.tmp")]:
        try:
            if now_s - file.stat().st_mtime > older_than_s:
                file.unlink()
        except FileNotFoundError:
            continue  # it is done


def main() -> None:
    request = json.load(sys.stdin)
    come_after_batches()
    try:
        make_checkpoint(request["uri"], request["options"], request["rows"])
    except (DeltaError, OSError) as error:
        # The lines after the first are a stack of native code.
        sys.exit(next(iter(str(error).splitlines()), type(error).__name__))
    if request["is_local"]:
        log = Path(request["uri"]) / "_delta_log"
        remove_temporary_files(log, _TEMPORARY_FILES_KEPT_S, time.time())


if __name__ == "__main__":
    main()
