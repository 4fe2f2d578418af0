"""What the status of a large group costs, and how large its topic grows.

    python benchmarks/status_topic.py [SECONDS] [PARTITIONS CONSUMERS]

Makes the status of a group (10,000 partitions on 500 consumers unless told), and prints its bytes
and the processor time of each step; the packer's question is made less often than the rest. Then
writes it to a real broker ten times as often as a controller would, for some seconds (60 unless
told), and prints how large the topic was at most and how long a reader needs that knows nothing
yet. The exit code is 1 where a target is missed: a record within Kafka's usual limit, a topic of at
most 64 MiB, a first look within a second.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))

from controller_step import Group

from penstock.controller.core import inputs
from penstock.controller.core.snapshot import question, snapshot, snapshot_without_question
from penstock.controller.core.state import State
from penstock.controller.process.status_file import (
    QUESTION_EVERY_MS,
    QUESTION_PARTITIONS,
    status_pause_s,
    status_text,
    with_part,
)
from penstock.kafka_io.control_topics import make_control_topics
from penstock.kafka_io.status_topic import StatusPublisher, StatusReader
from penstock.laboratory.broker import EmbeddedKafka
from penstock.messages.status_records import StatusPart, status_parts
from penstock.settings import Settings, changed_settings

WRITE_S = 60.0
QUICKER = 10
TOPIC_BYTES_MAX = 64 * 2**20
RECORD_BYTES_MAX = 1_000_000
LOOK_S_MAX = 1.0
ROUNDS = 5


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def least_s(work: Callable[[], object]) -> float:
    took_s = []
    for _ in range(ROUNDS):
        began_s = time.thread_time()
        work()
        took_s.append(time.thread_time() - began_s)
    return min(took_s)


def large_group(partitions: int, consumers: int) -> Group:
    group = Group(partitions, consumers)
    group.settle()
    chance = Random(1)
    group.speeds = {one: chance.lognormvariate(0, 1) for one in group.partitions}
    group.give(inputs.SpeedsMeasured(group.state.now_ms + 1, group.speeds))
    return group


def room_to_grow(state: State) -> State:
    """Like most groups: one at its maximum adds up its load for every status."""
    policy = replace(state.settings.policy, consumers_max=2 * len(state.consumers))
    return replace(state, settings=replace(state.settings, policy=policy))


def log_bytes(folder: Path, topic: str) -> int:
    """The segments of the topic's one partition, as they are on the disk."""
    return sum(file.stat().st_size for file in folder.rglob(f"{topic}-0/*.log"))


def main() -> int:
    write_s = float(sys.argv[1]) if len(sys.argv) > 1 else WRITE_S
    size = [int(one) for one in sys.argv[2:4]] or [10_000, 500]
    state = room_to_grow(large_group(*size).state)
    seen = snapshot(state, 0, is_degraded=False)
    rest, asked = snapshot_without_question(state, 0, is_degraded=False), seen["question"]
    whole_text = with_part(status_text(rest), "question", status_text(asked))
    text = f'{{"status":{whole_text}}}'

    def parts(number: int) -> list[StatusPart]:
        return list(status_parts("penstock", 1, number, text))

    steps = {
        "status": least_s(lambda: snapshot_without_question(state, 0, is_degraded=False)),
        "its JSON": least_s(lambda: status_text(rest)),
        "compressed": least_s(lambda: parts(1)),
    }
    question_s = least_s(lambda: status_text(question(state)))
    took_s = sum(steps.values())
    each = [len(one.value) for one in parts(1)]
    say(f"{size[0]} partitions, {size[1]} consumers")
    told = {**steps, "question with JSON": question_s}
    say("  " + ", ".join(f"{name} {took * 1000:.1f} ms" for name, took in told.items()))
    pause_s = status_pause_s(took_s)
    kept_s = QUESTION_EVERY_MS / 1000 if size[0] > QUESTION_PARTITIONS else pause_s
    share = took_s / pause_s + question_s / kept_s
    say(f"  every {pause_s:.1f} s, the question every {kept_s:.1f} s: {share:.2%} of a core")
    say(f"  {len(text)} bytes, compressed {sum(each)} in {len(each)} records")
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedKafka(data_directory=Path(folder)) as kafka,
    ):
        settings = changed_settings(
            Settings(), {"kafka.bootstrap_servers": kafka.bootstrap_servers}
        )
        make_control_topics(settings)
        publisher = StatusPublisher(settings.kafka, settings.topics)
        topic = settings.topics.names.status
        largest, written, number = 0, 0, 0
        deadline_s = time.monotonic() + write_s
        while time.monotonic() < deadline_s:
            number += 1
            publisher.publish(parts(number))
            written += sum(each)
            largest = max(largest, log_bytes(Path(folder), topic))
            time.sleep(pause_s / QUICKER)
        publisher.flush(10)
        began_s = time.monotonic()
        with closing(StatusReader(settings.kafka, settings.topics, "penstock")) as reader:
            found = reader.newest()
        look_s = time.monotonic() - began_s
    whole = found is not None and found.status == seen
    say(f"  {written / 2**20:.1f} MiB written, topic at most {largest / 2**20:.1f} MiB")
    say(f"  a first look takes {look_s:.2f} s{'' if whole else ' and finds something else'}")
    is_kept = largest <= TOPIC_BYTES_MAX and max(each) <= RECORD_BYTES_MAX and largest > 0
    return 0 if whole and is_kept and look_s <= LOOK_S_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
