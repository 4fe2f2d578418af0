"""The loads of the study: known shapes, each on its own topic, compressed or not. Pure."""

from dataclasses import dataclass, field

from penstock.laboratory.load import RecordForm


@dataclass(frozen=True, slots=True)
class Lane:
    """One shape on one topic. `step_at_s` is when the plateau to be judged begins."""

    name: str
    shape: str
    step_at_s: float | None = None
    partitions: int = 1


@dataclass(frozen=True, slots=True)
class MonitorRun:
    """Lanes that are produced together, with one producer."""

    name: str
    seconds: float
    lanes: tuple[Lane, ...]
    compression: str = "none"
    form: RecordForm = field(default_factory=RecordForm)


def runs(*, quick: bool) -> tuple[MonitorRun, ...]:
    """The whole study, or a short form with the same kinds of measures."""
    at = 12.0 if quick else 35.0
    seconds = 30.0 if quick else 90.0
    # The steps are at different times relative to the monitor's samples.
    shapes = (
        Lane("constant", "1MB/s", step_at_s=0.0),
        _step("step-up", "400kB/s", "1.2MB/s", at),
        _step("step-down", "1.2MB/s", "400kB/s", at + 0.25),
        _step("step-from-zero", "0MB/s", "800kB/s", at + 0.5),
        _step("step-small", "800kB/s", "960kB/s", at + 0.75),
    )
    moving = (
        Lane("ramp", f"ramp:300kB/s,1.5MB/s,{seconds - 10:.0f}s"),
        Lane("sine", "sine:800kB/s,400kB/s,30s"),
        Lane("random-walk", "walk:800kB/s,100kB/s,1s"),
        Lane("burst", "burst:300kB/s,2MB/s,15s,3s"),
    )
    compressed = (
        Lane("compressed-constant", "1MB/s", step_at_s=0.0),
        _step("compressed-step", "400kB/s", "1.2MB/s", at + 0.4),
    )
    many = _step("many", "5kB/s", "15kB/s", at + 0.6, partitions=20 if quick else 100)
    small = RecordForm(record_bytes=500)
    if quick:
        return (
            MonitorRun("shapes", seconds, shapes[:2] + moving[1:2]),
            MonitorRun("many", seconds, (many,), form=small),
        )
    return (
        MonitorRun("steps", seconds, shapes),
        MonitorRun("moving", seconds, moving),
        MonitorRun("compressed", seconds, compressed, compression="zstd"),
        MonitorRun("many", seconds, (many,), form=small),
    )


def _step(name: str, before: str, after: str, at_s: float, *, partitions: int = 1) -> Lane:
    return Lane(name, f"step:{before},{after},{at_s}s", step_at_s=at_s, partitions=partitions)
