"""Maintains the lake's tables: joins small files, removes orphans and files that were replaced.

    for report in keep_up(settings.lake): ...

Safe beside any number of writers, foreign tools and itself. It touches only tables that this group
writes, and follows the table's own properties: replaced files stay for
`delta.deletedFileRetentionDuration`, log entries for `delta.logRetentionDuration`, and
`delta.targetFileSize` wins over `lake.file_size`. Files that no commit names are removed only when
the ledger proves that none ever will (see orphans.py).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import PenstockError
from penstock.pipeline.compaction import Compacted, ProcessorClock, compact
from penstock.pipeline.empty_folders import remove_empty_batches
from penstock.pipeline.failures import ENDS_THE_PROCESS, LakeRefusedError
from penstock.pipeline.file_survey import FileSurvey
from penstock.pipeline.join_plan import JoinRules
from penstock.pipeline.lake_commit import LakeTable, StaleLedgerError
from penstock.pipeline.orphans import remove_orphans
from penstock.pipeline.storage import TableStorage, table_names
from penstock.settings.sections import LakeSettings

# Writer features under which a file may be replaced by another one with the same rows.
_COMPACTABLE = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "generatedColumns",
        "identityColumns",
        "invariants",
        "timestampNtz",
    }
)


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    table: str
    files_before: int
    files_after: int
    bytes_rewritten: int
    orphans_removed: int
    files_vacuumed: int
    joins_refused: int = 0
    # Why the table was not compacted; empty when it was.
    left_alone: str = ""
    # Whether the run ended before all was done, because it had taken its time.
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class UpkeepWork:
    """What is done to a table: by hand everything; a consumer does a little, again and again."""

    finishes_all: bool = True
    # Whether a table in which another tool has written files is joined as well.
    joins_foreign: bool = True
    sweeps: bool = True
    may_go_on: Callable[[], bool] = lambda: True
    clock: ProcessorClock | None = None


ALL_OF_IT = UpkeepWork()


def keep_up(
    lake: LakeSettings, tables: Sequence[str] = (), *, skips_others: bool = False
) -> Iterator[UpkeepReport]:
    """Maintain the named tables, or all that this group writes.

    A named table that this group does not write is refused, or skipped with `skips_others`.
    Whatever goes wrong with one table does not hold up the others: it is raised when they are
    done.
    """
    failures: dict[str, BaseException] = {}
    for name in tables or _all_tables(lake):
        try:
            is_ours = is_written_by(lake, name)
            if not is_ours and (skips_others or not tables):
                continue
            report = _keep_up_if_ours(lake, LakeTable(lake, name), is_ours=is_ours)
        except ENDS_THE_PROCESS:
            raise
        except BaseException as error:  # noqa: BLE001 -- see ENDS_THE_PROCESS
            failures[name] = error
            continue
        if report is not None:
            yield report
    if failures:
        raise _failed(failures, "could not be maintained")


def _failed(failures: Mapping[str, BaseException], what: str) -> LakeRefusedError:
    """One error for all tables that failed."""
    reasons = [
        f"The table {name} {what}: {_one_line(error).rstrip('.')}."
        for name, error in sorted(failures.items())
    ]
    first = failures[min(failures)]
    refused = LakeRefusedError(
        " ".join(reasons),
        remedy=(first.remedy if isinstance(first, PenstockError) else "")
        or "Check that the lake has free space and may be written, and that its files are whole.",
    )
    refused.__cause__ = first
    return refused


def _one_line(error: BaseException) -> str:
    if isinstance(error, PenstockError):
        return error.message
    # The lines after the first are a stack of native code.
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def _all_tables(lake: LakeSettings) -> list[str]:
    try:
        return table_names(lake)
    except OSError as error:
        raise LakeRefusedError(
            f"The tables in {lake.root} cannot be listed: {_one_line(error)}",
            remedy="Check that it exists and may be read.",
        ) from error


def is_written_by(lake: LakeSettings, name: str) -> bool:
    """Whether files of this group are in the table: each group writes to a folder of its own."""
    return TableStorage(lake, name).has_folder(f"data/{lake.group}")


def _keep_up_if_ours(lake: LakeSettings, table: LakeTable, *, is_ours: bool) -> UpkeepReport | None:
    """None for a table that does not exist yet."""
    if not table.exists():
        return None
    if not is_ours:
        raise LakeRefusedError(
            f"Group {lake.group} does not write the table {table.name}, so it does not maintain "
            "it.",
            remedy="Use the tool that writes it, or name the right group in lake.group.",
        )
    return keep_up_table(lake, table)


def join_rules(lake: LakeSettings, table: LakeTable, *, finishes_all: bool) -> JoinRules:
    """The table's own `delta.targetFileSize` wins over the settings."""
    return JoinRules(
        file_size=table.target_file_size() or lake.file_size_of(table.name),
        now_ms=time.time_ns() // 1_000_000,
        quiet_ms=round(lake.quiet_after * 1000),
        finishes_all=finishes_all,
    )


def keep_up_table(
    lake: LakeSettings, table: LakeTable, work: UpkeepWork = ALL_OF_IT
) -> UpkeepReport:
    """Maintain one table, which must exist."""
    rules = join_rules(lake, table, finishes_all=work.finishes_all)
    survey = table.survey(rules)
    before, reason = survey.files, _why_left_alone(table, survey, work)
    if reason:
        orphans = remove_orphans(table, lake.group) if work.sweeps else 0
        return UpkeepReport(table.name, before, before, 0, orphans, 0, left_alone=reason)
    done, reason = Compacted(before, before), ""
    failed: Exception | None = None
    try:
        done = _compacted(lake, table, work, survey)
    except StaleLedgerError:
        reason = "another process of this group compacts it now"
    except Exception as error:  # noqa: BLE001 -- raised below: a full disk needs space first
        failed = error
    vacuumed = orphans = 0
    if work.sweeps:
        try:
            vacuumed = table.vacuum()
        except Exception as error:  # noqa: BLE001 -- raised below, as above
            failed = failed or error
        # Last: a checkpoint may have dropped the log's memory of a file that was replaced.
        orphans = remove_orphans(table, lake.group)
        remove_empty_batches(table, lake.group)
    if failed is not None:
        raise failed
    return UpkeepReport(
        table.name,
        done.files_before,
        done.files_after,
        done.bytes_rewritten,
        orphans,
        vacuumed,
        done.joins_refused,
        reason,
        done.has_more,
    )


def _compacted(
    lake: LakeSettings, table: LakeTable, work: UpkeepWork, survey: FileSurvey
) -> Compacted:
    """By hand one part of the small files after the other, as long as there is one to join."""
    done: Compacted | None = None
    while True:
        # At another time, other folders have their turn.
        rules = join_rules(lake, table, finishes_all=work.finishes_all)
        part = compact(
            table, lake, rules, may_go_on=work.may_go_on, clock=work.clock, survey=survey
        )
        done = part if done is None else _both(done, part)
        if survey.is_whole or not part.bytes_rewritten or not work.finishes_all:
            return done
        survey = table.survey(join_rules(lake, table, finishes_all=True))


def _both(first: Compacted, then: Compacted) -> Compacted:
    return Compacted(
        first.files_before,
        then.files_after,
        first.bytes_rewritten + then.bytes_rewritten,
        first.joins_refused + then.joins_refused,
        then.has_more,
    )


def _why_left_alone(table: LakeTable, survey: FileSurvey, work: UpkeepWork) -> str:
    """Empty if the table's files may be joined."""
    foreign = sorted(table.writer_features() - _COMPACTABLE)
    if foreign:
        return f"the table uses {', '.join(foreign)}"
    # It may compact the table, too, and deltalake does not see what we replace meanwhile.
    if survey.has_foreign and not work.joins_foreign:
        return "another tool has written files of it"
    return ""


def remove_orphans_of(lake: LakeSettings, consumer_id: int) -> int:
    """Remove what earlier incarnations of this consumer left behind and can no longer commit.

    A lock on the state directory does not prove that an earlier incarnation is dead: on a volume
    that two nodes see it may still write. So only the ledger decides, as for all other orphans.
    Reads the list of files of every table in which this consumer has files.
    """
    removed = 0
    failures: dict[str, BaseException] = {}
    for name in _all_tables(lake):
        try:
            removed += remove_orphans(LakeTable(lake, name), lake.group, of_consumer=consumer_id)
        except ENDS_THE_PROCESS:
            raise
        except BaseException as error:  # noqa: BLE001 -- see ENDS_THE_PROCESS
            failures[name] = error
    if failures:
        raise _failed(failures, "could not be searched")
    return removed
