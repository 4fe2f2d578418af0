"""Reads offsets and epochs from the ledger, to plan ranges and to show progress."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.errors import PenstockError
from penstock.model import Epoch, TopicPartition
from penstock.pipeline.batch import application_id
from penstock.pipeline.failures import ENDS_THE_PROCESS, lake_refusal
from penstock.pipeline.lake_commit import LakeTable
from penstock.settings.sections import LakeSettings


def next_offsets(
    lake: LakeSettings,
    topic_ids: Mapping[TopicPartition, str],
    open_table: Callable[[str], LakeTable] | None = None,
) -> dict[TopicPartition, int | None]:
    """The next offset of each partition; None where it was never carried.

    A topic that was made again has another id, so its partitions start again.
    """
    found: dict[TopicPartition, int | None] = {}
    for table_name, names in _by_table(lake, topic_ids).items():
        table = open_table(table_name) if open_table else LakeTable(lake, table_name)
        for name, offset in table.next_offsets(names).items():
            found[names[name]] = offset
    return found


@dataclass(frozen=True, slots=True)
class LedgerView:
    """What the ledger says of each partition; one whose table cannot be read is in `failures`.

    `next_offsets` has None where a partition was never carried. `last_epochs` has the authority's
    epoch of the last commit, `leader_epochs` that of Kafka's leader, both where they are known.
    """

    next_offsets: dict[TopicPartition, int | None] = field(default_factory=dict)
    last_epochs: dict[TopicPartition, Epoch] = field(default_factory=dict)
    leader_epochs: dict[TopicPartition, int] = field(default_factory=dict)
    failures: dict[TopicPartition, PenstockError] = field(default_factory=dict)


def read_ledger(
    lake: LakeSettings,
    topic_ids: Mapping[TopicPartition, str],
    authority: str | None,
    open_table: Callable[[str], LakeTable],
) -> LedgerView:
    """Read every table's ledger. A table that cannot be read concerns its own partitions alone."""
    view = LedgerView()
    for table_name, names in _by_table(lake, topic_ids).items():
        try:
            table = open_table(table_name)
            offsets = table.next_offsets(names)
            # After the offsets: every offset was committed under an epoch that is read here.
            epochs = table.last_epochs(names, authority) if authority is not None else {}
            leader_epochs = table.leader_epochs(names)
        except ENDS_THE_PROCESS:
            raise
        except BaseException as error:  # noqa: BLE001 -- native code that panics raises no Exception
            view.failures.update(dict.fromkeys(names.values(), ledger_not_read(table_name, error)))
            continue
        view.next_offsets.update({names[one]: offset for one, offset in offsets.items()})
        view.last_epochs.update({names[one]: epoch for one, epoch in epochs.items()})
        view.leader_epochs.update({names[one]: epoch for one, epoch in leader_epochs.items()})
    return view


def ledger_not_read(table: str, error: BaseException) -> PenstockError:
    """Why the partitions that need this table's ledger must wait."""
    if isinstance(error, PenstockError):
        return error
    return lake_refusal(error)(
        f"The ledger of table {table} cannot be read: {type(error).__name__}: {error}",
        remedy="Mend or restore the table's _delta_log; its partitions go on by themselves.",
    )


def _by_table(
    lake: LakeSettings, topic_ids: Mapping[TopicPartition, str]
) -> dict[str, dict[str, TopicPartition]]:
    """Table -> ledger entry -> partition."""
    by_table: dict[str, dict[str, TopicPartition]] = {}
    for partition in sorted(topic_ids):
        name = application_id(lake.group, topic_ids[partition], partition)
        by_table.setdefault(lake.table_of(partition.topic).table, {})[name] = partition
    return by_table
