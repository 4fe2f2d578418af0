"""Produces at known speeds: for demos, studies and tests. Every record carries a unique id."""

from penstock.load.generator import LoadGenerator, LoadResult, LoadSample
from penstock.load.records import RecordForm
from penstock.load.shapes import Shape, parse_shape
from penstock.load.targets import Target, parse_target, replay_targets

__all__ = [
    "LoadGenerator",
    "LoadResult",
    "LoadSample",
    "RecordForm",
    "Shape",
    "Target",
    "parse_shape",
    "parse_target",
    "replay_targets",
]
