"""Reads offsets and epochs from the ledger, to plan ranges and to show progress."""

from collections.abc import Callable, Mapping

from penstock.model import Epoch, TopicPartition
from penstock.pipeline.batch import application_id
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


def last_epochs(
    lake: LakeSettings,
    topic_ids: Mapping[TopicPartition, str],
    authority: str,
    open_table: Callable[[str], LakeTable],
) -> dict[TopicPartition, Epoch]:
    """The authority's epoch of each partition's last commit; absent where there is none."""
    found: dict[TopicPartition, Epoch] = {}
    for table_name, names in _by_table(lake, topic_ids).items():
        for name, epoch in open_table(table_name).last_epochs(names, authority).items():
            found[names[name]] = epoch
    return found


def leader_epochs(
    lake: LakeSettings,
    topic_ids: Mapping[TopicPartition, str],
    open_table: Callable[[str], LakeTable],
) -> dict[TopicPartition, int]:
    """The Kafka leader's epoch at each partition's offset; absent where it is not known."""
    found: dict[TopicPartition, int] = {}
    for table_name, names in _by_table(lake, topic_ids).items():
        for name, epoch in open_table(table_name).leader_epochs(names).items():
            found[names[name]] = epoch
    return found


def _by_table(
    lake: LakeSettings, topic_ids: Mapping[TopicPartition, str]
) -> dict[str, dict[str, TopicPartition]]:
    """Table -> ledger entry -> partition."""
    by_table: dict[str, dict[str, TopicPartition]] = {}
    for partition in sorted(topic_ids):
        name = application_id(lake.group, topic_ids[partition], partition)
        by_table.setdefault(lake.table_of(partition.topic).table, {})[name] = partition
    return by_table
