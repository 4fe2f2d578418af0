"""What happens to a simulated group: its size, its lost messages and its faults, from one seed.

A scenario is a value. The same seed gives the same scenario, and the same scenario the same trace.
A shrinker makes smaller scenarios out of a failing one.
"""

import random
from dataclasses import dataclass
from enum import StrEnum

from penstock.controller.core.settings import ControllerSettings
from penstock.laboratory.protocol_simulation.lossy_topic import MessageFaults


class FaultKind(StrEnum):
    """What can go wrong, or merely happen, while faults are on."""

    CONTROLLER_CRASH = "controller_crash"
    CONTROLLER_CRASH_AT_EFFECT = "controller_crash_at_effect"
    SECOND_CONTROLLER = "second_controller"
    STATE_FILE_LOST = "state_file_lost"
    STATE_FILE_OLD = "state_file_old"
    CONSUMER_CRASH = "consumer_crash"
    CONSUMER_PAUSE = "consumer_pause"
    CONSUMER_SHUTDOWN = "consumer_shutdown"
    BATCH_HANGS = "batch_hangs"
    COMMIT_OUTCOME_UNKNOWN = "commit_outcome_unknown"
    TRANSFORMATION_FAILS = "transformation_fails"
    NODE_UNREACHABLE = "node_unreachable"
    CREATION_FAILS = "creation_fails"
    NEVER_COMES_UP = "never_comes_up"
    LIST_IS_STALE = "list_is_stale"
    FOREIGN_CONSUMER = "foreign_consumer"
    MONITOR_SILENT = "monitor_silent"
    PACKER_FAILS = "packer_fails"
    LOAD_CHANGES = "load_changes"
    PARTITIONS_ADDED = "partitions_added"
    TOPIC_DELETED = "topic_deleted"
    TOPIC_MADE_AGAIN = "topic_made_again"
    PAUSE_REQUESTED = "pause_requested"
    SETTINGS_CHANGED = "settings_changed"
    DEPLOYMENTS_UPDATED = "deployments_updated"


@dataclass(frozen=True, slots=True)
class Fault:
    """`pick` chooses the victim among those there are, `size` how long or how much."""

    at_ms: int
    kind: FaultKind
    pick: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    seed: int
    topics: tuple[int, ...]
    load_share: float
    consumers_max: int
    faults_ms: int
    message_faults: MessageFaults
    faults: tuple[Fault, ...]
    is_fenced_by_broker: bool = True
    restarts_consumers: bool = True


# The protocol's times, shortened: virtual time is cheap, events are not.
SETTINGS = ControllerSettings(
    capacity_bytes_per_s=1_000.0,
    target_utilisation=0.85,
    catch_up_ms=20_000,
    consumers_max=20,
    spare_consumers=1,
    creations_per_window_max=10,
    creation_window_ms=5_000,
    creation_backoff_ms=1_000,
    tick_busy_ms=200,
    tick_idle_ms=500,
    query_resend_ms=500,
    synchronise_ms_max=3_000,
    resend_ms=700,
    acknowledge_ms_max=6_000,
    silence_ms_max=3_500,
    creation_ms_max=5_000,
    packing_ms_max=2_000,
    list_period_ms=5_000,
    delete_resend_ms=2_000,
    plan_interval_ms=1_500,
    scale_down_period_ms=8_000,
    supersede_after_ms=1_000,
    fruitless_backoff_ms=3_000,
    speeds_stale_after_ms=5_000,
    retry_failed_ms=2_000,
    idle_grace_ms=4_000,
)

_KINDS = tuple(FaultKind)


def scenario(seed: int) -> Scenario:
    """A group and its faults. Most are small, some reach 200 partitions and 20 consumers."""
    chance = random.Random(seed)
    size = chance.choices(("small", "middle", "large"), weights=(70, 25, 5))[0]
    partitions = {"small": 8, "middle": 40, "large": 200}[size]
    consumers_max = {"small": 5, "middle": 10, "large": 20}[size]
    total = chance.randint(max(3, partitions // 3), partitions)
    topics = []
    while total > 0:
        share = min(total, chance.randint(1, max(1, partitions // 2)))
        topics.append(share)
        total -= share
    faults_ms = chance.randint(8_000, 16_000)
    number = chance.randint(4, 10)
    faults = tuple(
        sorted(
            (
                Fault(
                    at_ms=chance.randint(2_500, faults_ms),
                    kind=chance.choice(_KINDS),
                    pick=chance.randint(0, 1_000),
                    size=chance.randint(0, 1_000),
                )
                for _ in range(number)
            ),
            key=lambda fault: fault.at_ms,
        )
    )
    loses_messages = chance.random() < 0.7
    message_faults = MessageFaults(
        lost=chance.choice((0.0, 0.05, 0.2)) if loses_messages else 0.0,
        doubled=chance.choice((0.0, 0.05, 0.2)) if loses_messages else 0.0,
        delayed=chance.choice((0.0, 0.1, 0.3)) if loses_messages else 0.0,
        delay_ms_max=chance.choice((300, 3_000, 8_000)),
        through_codec=0.3 if chance.random() < 0.1 else 0.0,
    )
    return Scenario(
        seed=seed,
        topics=tuple(topics),
        load_share=chance.uniform(0.2, 0.7),
        consumers_max=consumers_max,
        faults_ms=faults_ms,
        message_faults=message_faults,
        faults=faults,
        is_fenced_by_broker=chance.random() < 0.5,
        restarts_consumers=chance.random() < 0.6,
    )
