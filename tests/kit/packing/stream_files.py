"""Writes a stream of measurements as the CSV that `read_stream` reads."""

import csv
from pathlib import Path

from penstock.laboratory.packing_replay.stream import Stream


def write_stream(stream: Stream, path: Path) -> None:
    """Write a header row of partition names, then one row per measurement."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(str(partition) for partition in stream.partitions)
        writer.writerows(stream.rows)
