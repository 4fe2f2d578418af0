"""A first start on default settings with records waiting: `python benchmarks/first_start.py`.

Two million JSON records of 600 bytes wait in a topic with twelve partitions; a transformation makes
typed columns of them. The group with all defaults and one fixed consumer carry them one after the
other, on the same broker, each with a Spark server of its own. The figure is the ratio of their
speeds, from the start of the group to the last record in the ledger. Exit code 1 when it is below
its bound or a consumer was ended. `--busy 2` runs two busy processes beside it.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from penstock.kafka_io.administration import Administration
from penstock.kafka_io.producer import RecordProducer
from penstock.laboratory.broker import small_broker
from penstock.local_group import LocalGroup
from penstock.model import TopicPartition
from penstock.settings import load_settings
from penstock.settings.sections import KafkaSettings
from penstock.verification import carried_so_far

TOPIC, PARTITIONS, RECORD_BYTES = "orders", 12, 600
TABLE = {
    "transformation": "first_start_transformation:orders",
    "columns": ["partition", "offset", "id", "customer", "amount", "at_ms", "note"],
}
LOOK_EVERY_S = 0.5
GIVE_UP_S = 900.0
FIXED = {
    "controller.consumers_min": "1",
    "controller.consumers_max": "1",
    "controller.spare_consumers": "0",
}


@dataclass(frozen=True)
class Run:
    seconds: float
    first_commit_s: float
    consumers_started: int
    consumers_ended: int

    def __str__(self) -> str:
        return (
            f"{self.seconds:6.1f} s, the first commit after {self.first_commit_s:.1f} s, "
            f"{self.consumers_started} consumers started, {self.consumers_ended} ended"
        )


def write_records(kafka: KafkaSettings, count: int) -> None:
    Administration(kafka).create_topic(TOPIC, partitions=PARTITIONS)
    producer = RecordProducer(kafka, **{"linger.ms": 50, "queue.buffering.max.messages": 200_000})
    for number in range(count):
        row = {"id": number, "customer": f"c{number % 5000}", "amount": number / 7, "at_ms": number}
        text = json.dumps({**row, "note": ""})
        value = json.dumps({**row, "note": "x" * (RECORD_BYTES - len(text))}).encode()
        producer.send(TOPIC, number % PARTITIONS, value)
        if not number % 20_000:
            producer.poll()
    if producer.flush(120):
        raise AssertionError("not all records were written")


def carried(name: str, bootstrap_servers: str, count: int, changes: Mapping[str, str]) -> Run:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        flags = {
            "kafka.bootstrap_servers": bootstrap_servers,
            "monitor.include": f'["{TOPIC}"]',
            "topics.prefix": name,
            "lake.group": name,
            "lake.root": f"{folder}/lake",
            "controller.directory": f"{folder}/group",
            "lake.tables": json.dumps({TOPIC: TABLE}),
            **changes,
        }
        given = [text for key, value in flags.items() for text in ("--set", f"{key}={value}")]
        settings = load_settings(flags=flags, environment={}).settings
        began_s, first_s = time.monotonic(), 0.0
        with LocalGroup(settings, given, start_broker=None, embedded_spark=True) as group:
            while (seconds := time.monotonic() - began_s) < GIVE_UP_S:
                group.repair()
                so_far = sum(carried_so_far(group.settings, [TOPIC]).values())
                first_s = first_s or (seconds if so_far else 0.0)
                if so_far >= count:
                    break
                time.sleep(LOOK_EVERY_S)
            else:
                raise AssertionError(f"{so_far} of {count} records after {GIVE_UP_S:g} s")
            log = group.log_of("controller").read_text(encoding="utf-8")
        started, ended = log.count("consumer_created"), log.count("consumer_deleted")
        return Run(seconds, first_s, started, ended)


def _burn() -> None:
    while True:
        pass


@contextmanager
def busy(processes: int) -> Iterator[None]:
    burning = [multiprocessing.Process(target=_burn, daemon=True) for _ in range(processes)]
    for one in burning:
        one.start()
    try:
        yield
    finally:
        for one in burning:
            one.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--busy", type=int, default=0)
    chosen = parser.parse_args()
    bound = 0.9 if chosen.busy else 0.95
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # where consumers find the transformation
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder,
        small_broker(Path(folder)) as kafka,
    ):
        typer.echo(f"writing {chosen.records:,} records", err=True)
        write_records(kafka.settings, chosen.records)
        partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        count = sum(Administration(kafka.settings).end_offsets(partitions).values())
        with busy(chosen.busy):
            fixed = carried("fixed", kafka.bootstrap_servers, count, FIXED)
            typer.echo(f"one fixed consumer  {fixed}")
            group = carried("defaults", kafka.bootstrap_servers, count, {})
            typer.echo(f"the group, defaults {group}")
    ratio = fixed.seconds / group.seconds
    is_met = ratio >= bound and not group.consumers_ended
    typer.echo(f"speed of the group, of one fixed consumer: {ratio:.2f} (at least {bound:g})")
    typer.echo("ok" if is_met else "MISSED")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
