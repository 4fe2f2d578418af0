"""Writes records at known speeds, for demos, studies and tests. Every record has a unique id."""

from penstock.laboratory.load.generator import LoadGenerator, LoadResult, LoadSample
from penstock.laboratory.load.records import RecordForm, RecordMaker, lane_of
from penstock.laboratory.load.shapes import Shape, parse_shape
from penstock.laboratory.load.targets import Target, parse_target, replay_targets

__all__ = [
    "LoadGenerator",
    "LoadResult",
    "LoadSample",
    "RecordForm",
    "RecordMaker",
    "Shape",
    "Target",
    "lane_of",
    "parse_shape",
    "parse_target",
    "replay_targets",
]
