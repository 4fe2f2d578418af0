"""What every process tells about itself."""

from functools import partial

from penstock.metrics.definition import Process, gauge

_gauge = partial(gauge, Process.EVERY)

BUILD = _gauge(
    "build_info",
    "Always 1. `version` is the release, `process` is monitor, controller or consumer.",
    "version",
    "process",
)
READY = _gauge("ready", "1 while the process lacks nothing it needs, as `/readyz` says.", "process")

METRICS = (BUILD, READY)
