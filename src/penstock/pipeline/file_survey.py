"""What upkeep must know of a table's files, which may be a million: a number, and the small ones.

The log is read piece by piece. Files that are large enough are counted and dropped; of the small
ones so many are held that the memory stays bounded, and the others have their turn later.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from penstock.model.json_text import read_json
from penstock.pipeline.checkpoint_schema import ADD, DAMAGE, array_of
from penstock.pipeline.join_plan import Folder, FoundFolders, Join, JoinRules, kind_of
from penstock.pipeline.log_entries import LogNotUnderstoodError
from penstock.pipeline.log_replay import LogReplay
from penstock.pipeline.replaced_files import SeenFiles
from penstock.pipeline.table_files import ActiveFile

# Each takes about half a kilobyte.
SMALL_FILES_MAX = 50_000
# Every group writes below it, and no other tool does.
_OUR_FOLDER = "data/"


@dataclass(frozen=True, slots=True)
class FileSurvey:
    """A table's files at one version, as far as upkeep needs them."""

    version: int
    files: int
    has_foreign: bool
    # Those with small files in them.
    folders: Sequence[Folder]
    # Whether all small files are there.
    is_whole: bool
    # Which table it is; None when deltalake has read the list: its log is not understood here.
    table_id: str | None = None

    def seen(self, joins: Iterable[Join]) -> SeenFiles | None:
        """The files that are to be joined, to see what happens to them meanwhile."""
        if self.table_id is None:
            return None
        paths = (file.path for join in joins for file in join.files)
        return SeenFiles(self.version, self.table_id, paths)


def survey_log(found: LogReplay, rules: JoinRules) -> FileSurvey:
    """Raises LogNotUnderstoodError."""
    counted = _Counted(rules)
    columns = [str(one) for one in found.metadata["partitionColumns"]]
    try:
        for adds, _ in found.unchanged_files():
            counted.add_actions(adds, columns)
        counted.add_actions(array_of(found.added.values(), ADD), columns)
    except DAMAGE as error:
        raise LogNotUnderstoodError(f"an action is damaged: {error}") from error
    return counted.survey(found.version, str(found.metadata["id"]))


def survey_files(version: int, files: Iterable[ActiveFile], rules: JoinRules) -> FileSurvey:
    """Of a table whose list of files deltalake has read."""
    counted = _Counted(rules)
    for file in files:
        counted.add(file.path, file.size_bytes, file.modified_at_ms, file.partition_values, file)
    return counted.survey(version, None)


class _Counted:
    def __init__(self, rules: JoinRules) -> None:
        self._rules = rules
        self._files = 0
        self._has_foreign = False
        self._folders = FoundFolders(rules, SMALL_FILES_MAX)

    def add_actions(self, adds: Any, columns: Sequence[str]) -> None:
        values = dict(zip((one.name for one in adds.type), adds.flatten(), strict=True))
        names = ("path", "size", "modificationTime", "partitionValues")
        rows = zip(*(values[name].to_pylist() for name in names), strict=True)
        for number, (log_path, size_bytes, at_ms, pairs) in enumerate(rows):
            path = unquote(log_path) if "%" in log_path else log_path
            given = dict(pairs or ())
            # An empty text stands for no value.
            partition = {name: given.get(name) or None for name in columns}
            if self._rules.is_large(size_bytes):
                self.add(path, size_bytes, at_ms, partition, None)
                continue
            records = _records(values["stats"][number].as_py())
            file = ActiveFile(path, size_bytes, at_ms, records, partition, log_path)
            self.add(path, size_bytes, at_ms, partition, file)

    def add(
        self,
        path: str,
        size_bytes: int,
        at_ms: int,
        partition: Mapping[str, str | None],
        file: ActiveFile | None,
    ) -> None:
        kind = kind_of(path, partition)
        self._files += 1
        self._has_foreign |= not path.startswith(_OUR_FOLDER)
        self._folders.saw(kind, at_ms)
        if file is not None and not self._rules.is_large(size_bytes):
            self._folders.add_small(kind, file)

    def survey(self, version: int, table_id: str | None) -> FileSurvey:
        return FileSurvey(
            version,
            self._files,
            self._has_foreign,
            self._folders.folders(),
            self._folders.is_whole,
            table_id,
        )


def _records(stats: str | None) -> int | None:
    found = read_json(stats).get("numRecords") if stats else None
    return found if isinstance(found, int) else None
