"""`penstock load`: writes to Kafka at known speeds."""

import csv
import json
import secrets
import signal
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.errors import PenstockError, UsageError
from penstock.kafka_io.administration import Administration
from penstock.laboratory.load import (
    LoadGenerator,
    LoadResult,
    LoadSample,
    RecordForm,
    Target,
    parse_target,
    replay_targets,
)
from penstock.model.sentences import counted
from penstock.settings.units import parse_bytes, parse_duration

PROGRESS_EVERY_SAMPLES = 2


def load(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC[:PARTITIONS]=SHAPE...",
            help="What to write where. Each partition gets this speed.",
        ),
    ] = None,
    duration: Annotated[str, typer.Option(help="How long, for instance 60s or 5m.")] = "30s",
    record_size: Annotated[str, typer.Option(help="Bytes of a record, key and value.")] = "1000",
    keys: Annotated[
        str, typer.Option(help="`none`, `id` (a key for every record), or a number of keys.")
    ] = "none",
    compression: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"], typer.Option(help="The producer's codec.")
    ] = "none",
    compressible: Annotated[
        bool, typer.Option("--compressible", help="Pad records with one repeated letter.")
    ] = False,
    create: Annotated[
        int | None,
        typer.Option(min=1, metavar="PARTITIONS", help="Create topics that do not exist."),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Replay speeds: a header of topic-partition names, rows of bytes/s.",
        ),
    ] = None,
    every: Annotated[str, typer.Option(help="How long a row of the replayed file lasts.")] = "1s",
    seed: Annotated[int, typer.Option(help="The seed of random walks and padding.")] = 0,
    run_id: Annotated[
        str | None, typer.Option(help="The prefix of every record's id. Default: random.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the reached speed per partition and second (.csv or .json).",
        ),
    ] = None,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Write to Kafka at known speeds and report the reached speeds.

    SHAPE is a speed (`1MB/s`) or one of `step:BEFORE,AFTER,AT`, `ramp:START,END,OVER`,
    `sine:MEAN,AMPLITUDE,PERIOD`, `burst:BASE,PEAK,EVERY,FOR`, `walk:START,DELTA,EVERY`.
    Every record is JSON with a unique id.

    Examples:
    `penstock load orders=200kB/s --create 8 --duration 60s`

    `penstock load orders:0-3=step:1MB/s,4MB/s,30s clicks=sine:500kB/s,300kB/s,20s`

    """
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    form = _form(record_size, keys, compressible)
    duration_s = _usage(parse_duration, duration)
    _check_report(report)
    chosen = _targets(
        Administration(loaded.kafka),
        targets or [],
        replay,
        _usage(parse_duration, every),
        create,
        seed,
    )
    samples: list[LoadSample] = []
    generator = LoadGenerator(
        loaded.kafka,
        chosen,
        run_id=run_id or secrets.token_hex(4),
        form=form,
        seed=seed,
        compression=compression,
        on_samples=lambda now: _progress(now, samples, duration_s),
    )
    stop = Event()
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    result = generator.run(duration_s, stop)
    if report is not None:
        _write_report(report, samples)
    print_data(_summary(result), output, _table(result))
    if result.records_failed:
        raise PenstockError(
            f"{result.records_failed} of {result.records_sent} records failed. "
            f"{result.first_failure or 'They were not acknowledged in time.'}"
        )


def _usage(parse: Any, text: str) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(f"{error}.") from error


def _form(record_size: str, keys: str, compressible: bool) -> RecordForm:
    if not (keys in {"none", "id"} or keys.isdecimal()):
        raise UsageError(f"--keys is `none`, `id` or a number, not {keys!r}.")
    chosen: Any = int(keys) if keys.isdecimal() else keys
    try:
        return RecordForm(parse_bytes(record_size), chosen, compressible)
    except ValueError as error:
        raise UsageError(f"{error}.") from error


def _targets(
    administration: Administration,
    texts: list[str],
    replay: Path | None,
    every_s: float,
    create: int | None,
    seed: int,
) -> list[Target]:
    """The partitions to write to. With --create, missing topics are created."""
    if bool(texts) == bool(replay):
        raise UsageError("Give either targets (orders=1MB/s) or --replay FILE.")
    counts = dict(administration.cluster().partition_counts)
    if replay is not None:
        chosen = replay_targets(replay, every_s=every_s)
        needed: dict[str, int] = {}
        for target in chosen:
            one = target.partition
            needed[one.topic] = max(needed.get(one.topic, 0), one.partition + 1)
    else:
        needed = {text.partition("=")[0].partition(":")[0]: create or 1 for text in texts}
        chosen = []
    for topic, partitions in sorted(needed.items()):
        if create is not None and topic not in counts:
            counts[topic] = max(create, partitions)
            administration.create_topic(topic, partitions=counts[topic])
            say(f"created {topic} with {counted(counts[topic], 'partition')}")
        elif replay is not None and counts.get(topic, 0) < partitions:
            raise UsageError(
                f"{replay}: {topic} has {counts.get(topic, 0)} partitions, the file names "
                f"{partitions}.",
                remedy="Create the topic with --create.",
            )
    for text in texts:
        chosen += parse_target(text, counts, seed=seed)
    names = [target.partition for target in chosen]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UsageError(f"{min(twice)} is named twice.")
    return chosen


def _progress(now: list[LoadSample], samples: list[LoadSample], duration_s: float) -> None:
    samples += now
    if not now or round(now[0].elapsed_s) % PROGRESS_EVERY_SAMPLES:
        return
    target = sum(one.target_bytes_per_s for one in now)
    reached = sum(one.reached_bytes_per_s for one in now)
    say(
        f"{now[0].elapsed_s:6.1f} s of {duration_s:.0f} s: "
        f"{reached / 1e6:.2f} MB/s reached, {target / 1e6:.2f} MB/s asked for"
    )


def _check_report(report: Path | None) -> None:
    """Check the path before the load starts."""
    if report is None:
        return
    if report.suffix not in {".csv", ".json"}:
        raise UsageError(f"--report takes a .csv or .json file, not {report}.")
    if not report.absolute().parent.is_dir():
        raise UsageError(f"There is no directory {report.absolute().parent} for the report.")


def _write_report(report: Path, samples: list[LoadSample]) -> None:
    rows = [asdict(sample) for sample in samples]
    with report.open("w", encoding="utf-8", newline="") as file:
        if report.suffix == ".json":
            json.dump(rows, file, indent=1)
        else:
            writer = csv.DictWriter(file, fieldnames=list(LoadSample.__dataclass_fields__))
            writer.writeheader()
            writer.writerows(rows)
    say(f"wrote {report}")


def _summary(result: LoadResult) -> dict[str, Any]:
    return {**asdict(result), "bytes_per_s": result.bytes_per_s}


def _table(result: LoadResult) -> Table:
    table = Table("", "", box=None, show_header=False)
    table.add_row("seconds", f"{result.seconds:.1f}")
    table.add_row("records acknowledged", f"{result.records_acknowledged:,}")
    table.add_row("speed reached", f"{result.bytes_per_s / 1e6:.2f} MB/s")
    table.add_row("records failed", f"{result.records_failed:,}")
    table.add_row("not sent (broker too slow)", f"{result.bytes_skipped / 1e6:.2f} MB")
    return table
