"""What is produced: known shapes, on partitions of their own, compressed and not. Pure."""

from dataclasses import dataclass, field

from penstock.load import RecordForm


@dataclass(frozen=True, slots=True)
class Lane:
    """One shape on one topic. `step_at_s` is when a plateau begins that can be judged."""

    name: str
    shape: str
    step_at_s: float | None = None
    partitions: int = 1


@dataclass(frozen=True, slots=True)
class Run:
    """Lanes that are produced together, with one producer."""

    name: str
    seconds: float
    lanes: tuple[Lane, ...]
    compression: str = "none"
    form: RecordForm = field(default_factory=RecordForm)


def runs(*, quick: bool) -> tuple[Run, ...]:
    """The whole study, or a short form of it with the same kinds of judgement."""
    at = 12 if quick else 35
    seconds = 30.0 if quick else 90.0
    shapes = (
        Lane("constant", "1MB/s", step_at_s=0.0),
        Lane("step-up", f"step:400kB/s,1.2MB/s,{at}s", step_at_s=at),
        Lane("step-down", f"step:1.2MB/s,400kB/s,{at}s", step_at_s=at),
        Lane("step-from-zero", f"step:0MB/s,800kB/s,{at}s", step_at_s=at),
        Lane("step-small", f"step:800kB/s,960kB/s,{at}s", step_at_s=at),
    )
    moving = (
        Lane("ramp", f"ramp:300kB/s,1.5MB/s,{seconds - 10:.0f}s"),
        Lane("sine", "sine:800kB/s,400kB/s,30s"),
        Lane("random-walk", "walk:800kB/s,100kB/s,1s"),
        Lane("burst", "burst:300kB/s,2MB/s,15s,3s"),
    )
    compressed = (
        Lane("compressed-constant", "1MB/s", step_at_s=0.0),
        Lane("compressed-step", f"step:400kB/s,1.2MB/s,{at}s", step_at_s=at),
    )
    many = Lane("many", f"step:5kB/s,15kB/s,{at}s", step_at_s=at, partitions=20 if quick else 200)
    small = RecordForm(record_bytes=250)
    if quick:
        return (
            Run("shapes", seconds, shapes[:2] + moving[1:2]),
            Run("many", seconds, (many,), form=small),
        )
    return (
        Run("steps", seconds, shapes),
        Run("moving", seconds, moving),
        Run("compressed", seconds, compressed, compression="zstd"),
        Run("many", seconds, (many,), form=small),
    )
