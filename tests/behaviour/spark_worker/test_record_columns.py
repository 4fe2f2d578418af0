"""The columns that transformations are promised are those that both ways into the lake have."""

from penstock.spark_worker.record_columns import RECORD_COLUMNS
from penstock.transformations import RAW_COLUMNS


def test_a_transformation_gets_the_columns_of_a_raw_record() -> None:
    """The public list and the types of the raw columns name the same columns in the same order."""
    assert tuple(RECORD_COLUMNS) == RAW_COLUMNS
