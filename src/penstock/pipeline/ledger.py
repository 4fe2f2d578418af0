"""What the lake says of offsets, for whoever plans a range or shows a lag. Reads only."""

from collections.abc import Callable, Mapping

from penstock.model import TopicPartition
from penstock.pipeline.batch import application_id
from penstock.pipeline.lake_commit import LakeTable
from penstock.settings.sections import LakeSettings


def next_offsets(
    lake: LakeSettings,
    topic_ids: Mapping[TopicPartition, str],
    open_table: Callable[[str], LakeTable] | None = None,
) -> dict[TopicPartition, int | None]:
    """Where each partition goes on; None where it has never been carried.

    A topic that was made again has another id, so its partitions start afresh.
    """
    by_table: dict[str, dict[str, TopicPartition]] = {}
    for partition in sorted(topic_ids):
        name = application_id(lake.group, topic_ids[partition], partition)
        by_table.setdefault(lake.table_of(partition.topic).table, {})[name] = partition
    found: dict[TopicPartition, int | None] = {}
    for table_name, names in by_table.items():
        table = open_table(table_name) if open_table else LakeTable(lake, table_name)
        for name, offset in table.next_offsets(names).items():
            found[names[name]] = offset
    return found
