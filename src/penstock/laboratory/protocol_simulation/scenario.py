"""A simulated group's size, delivery faults and other faults, all drawn from one seed.

The same seed gives the same scenario, and the same scenario gives the same trace. `shrink` makes a
failing scenario smaller.
"""

import random
from dataclasses import dataclass, replace
from enum import StrEnum

from penstock.laboratory.protocol_simulation.lossy_topic import DeliveryFaults
from penstock.settings import Settings, changed_settings


class LastingLoad(StrEnum):
    """What may load the group for long once the faults are over (see `lasting_load`)."""

    BACKLOG = "backlog"
    BURSTS = "bursts"
    HOT_PARTITION = "hot_partition"
    SHARED_LIMIT = "shared_limit"


class FaultKind(StrEnum):
    """What can happen to the group while faults are on."""

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
    MONITOR_LIES = "monitor_lies"
    MONITOR_BLIND = "monitor_blind"
    MONITOR_LATE = "monitor_late"
    PACKER_FAILS = "packer_fails"
    LOAD_CHANGES = "load_changes"
    HOT_PARTITION = "hot_partition"
    PARTITIONS_ADDED = "partitions_added"
    TOPIC_DELETED = "topic_deleted"
    TOPIC_MADE_AGAIN = "topic_made_again"
    PAUSE_REQUESTED = "pause_requested"
    SETTINGS_CHANGED = "settings_changed"
    DEPLOYMENTS_UPDATED = "deployments_updated"
    LISTING_FAILS = "listing_fails"
    BROKER_AWAY = "broker_away"
    CONTROLLER_PAUSE = "controller_pause"
    LAKE_AWAY = "lake_away"
    TABLE_UNREADABLE = "table_unreadable"
    SPARK_AWAY = "spark_away"
    SLOW_STARTS = "slow_starts"
    LONG_BATCHES = "long_batches"
    FORGED_ORDERS = "forged_orders"
    FORGED_REPORT = "forged_report"


# The largest `size` of a fault.
SIZE_MAX = 1_000


@dataclass(frozen=True, slots=True)
class SimulatedFault:
    """`pick` chooses the victim, `size` how long or how much."""

    at_ms: int
    kind: FaultKind
    pick: int = 0
    size: int = 0


# How long what all consumers share is away or slow: at least, and at most.
OUTAGES_MS: dict[FaultKind, tuple[int, int]] = {
    FaultKind.BROKER_AWAY: (5_000, 60_000),
    FaultKind.CONTROLLER_PAUSE: (5_000, 60_000),
    FaultKind.LAKE_AWAY: (0, 180_000),
    FaultKind.TABLE_UNREADABLE: (10_000, 90_000),
    FaultKind.SPARK_AWAY: (5_000, 120_000),
    FaultKind.SLOW_STARTS: (0, 300_000),
    FaultKind.LONG_BATCHES: (5_000, 60_000),
}


def outage_ms(fault: SimulatedFault) -> int:
    """How long an outage lasts."""
    least_ms, most_ms = OUTAGES_MS[fault.kind]
    return least_ms + (most_ms - least_ms) * fault.size // SIZE_MAX


@dataclass(frozen=True, slots=True)
class Scenario:
    seed: int
    topics: tuple[int, ...]
    load_share: float
    consumers_max: int
    faults_until_ms: int
    delivery_faults: DeliveryFaults
    faults: tuple[SimulatedFault, ...]
    is_fenced_by_broker: bool = True
    restarts_consumers: bool = True
    # What one consumer really carries, and all of them together, in capacities of the settings; 0
    # is no limit.
    carried_by_one: float = 0.0
    carried_by_all: float = 0.0
    capacity_is_measured: bool = False
    # How much longer a record of each topic takes; empty: all alike.
    topic_costs: tuple[float, ...] = ()
    # The most that backlogs add to the load that is planned for.
    catch_up_share: float = 0.5
    growth_settle_s: int = 6
    patience_s: int = 900
    lasting_load: LastingLoad | None = None
    # It grows in steps, and passes the shared limit again and again.
    lasting_load_grows: bool = False
    # When a deployment is asked for whose consumers carry nothing; 0 is never.
    bad_update_ms: int = 0


# The variable that a request for a bad deployment sets.
BAD_DEPLOYMENT = "APP_BAD"
# The protocol's times, shortened: virtual time is cheap, events are not.
TICK_BUSY_MS = 200
SETTINGS = changed_settings(
    Settings(),
    {
        "packing.capacity": "1000B/s",
        "packing.scale_down_period": "8s",
        "packing.no_gain_wait": "3s",
        "packing.look_ahead": "0s",
        "controller.consumers_min": 0,
        "controller.consumers_max": 20,
        "controller.catch_up": "20s",
        "controller.creations_per_minute_max": 60,
        "controller.creation_retry": "1s",
        "controller.creation_timeout": "5s",
        "controller.synchronise": "3s",
        "controller.command_resend": "600ms",
        "controller.acknowledge": "6s",
        "controller.heartbeat_period": "500ms",
        "controller.silence": "3500ms",
        "consumer.report_period": "1s",
        "controller.give_up_period": "3s",
        "controller.packing_timeout": "2s",
        "controller.list_period": "5s",
        "controller.list_retry": "1s",
        "controller.delete_resend": "2s",
        "controller.plan_interval": "1500ms",
        "controller.overtake_after": "1s",
        "controller.speeds_stale": "5s",
        "controller.failed_partition_retry": "2s",
        "controller.idle_grace": "4s",
        "controller.growth_retry": "1000s",
        "controller.number_retry": "5s",
        "packing.over_capacity_for": "1500ms",
    },
)

# What somebody writes who may write to the controller topic and is not the leading controller.
_FORGERIES = (FaultKind.FORGED_ORDERS, FaultKind.FORGED_REPORT)
_KINDS = tuple(kind for kind in FaultKind if kind not in {*OUTAGES_MS, *_FORGERIES})
# Of the scenarios: those in which messages are forged, and how many of each kind.
FORGERY_SHARE = 0.08
FORGERIES_EACH = 2
_OUTAGES_OF_OTHERS = tuple(
    kind for kind in OUTAGES_MS if kind not in {FaultKind.SPARK_AWAY, FaultKind.TABLE_UNREADABLE}
)
# Of the small scenarios: those in which something that all consumers share is away. A minute of a
# larger one costs too much.
OUTAGE_SHARE = 0.4
# Faults go on for this long after the last outage.
AFTER_OUTAGES_MS = 10_000
# Of the outages: those of the Spark server that all consumers share.
SPARK_AWAY_SHARE = 0.2
# Of the small scenarios without an outage: one table cannot be read in these. The controller's
# patience is short then, so that the table is away for longer.
UNREADABLE_SHARE = 0.15
UNREADABLE_PARTITIONS_MAX = 8
UNREADABLE_PATIENCE_S = 20
# Of the scenarios: those with a lasting load. It needs few faults and a group that can grow.
LASTING_LOAD_SHARE = 0.045
# Of those with a shared limit and measured capacities: those whose load grows.
GROWING_LOAD_SHARE = 0.5
LASTING_LOAD_FAULTS = 4
LASTING_LOAD_CONSUMERS_MAX = 18


def scenario(seed: int) -> Scenario:
    """The scenario of a seed. Most are small, some have 200 partitions and 20 consumers."""
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
    faults_until_ms = chance.randint(8_000, 16_000)
    number = chance.randint(4, 10)
    faults = tuple(
        sorted(
            (
                SimulatedFault(
                    at_ms=chance.randint(2_500, faults_until_ms),
                    kind=chance.choice(_KINDS),
                    pick=chance.randint(0, 1_000),
                    size=chance.randint(0, 1_000),
                )
                for _ in range(number)
            ),
            key=lambda fault: fault.at_ms,
        )
    )
    is_unreliable = chance.random() < 0.7
    delivery_faults = DeliveryFaults(
        lost=chance.choice((0.0, 0.05, 0.2)) if is_unreliable else 0.0,
        doubled=chance.choice((0.0, 0.05, 0.2)) if is_unreliable else 0.0,
        delayed=chance.choice((0.0, 0.1, 0.3)) if is_unreliable else 0.0,
        delay_ms_max=chance.choice((300, 3_000, 8_000)),
        through_codec=0.3 if chance.random() < 0.1 else 0.0,
    )
    load_share = chance.uniform(0.2, 0.7)
    is_fenced_by_broker = chance.random() < 0.5
    restarts_consumers = chance.random() < 0.6
    outages = _outages(chance, faults_until_ms) if size == "small" else ()
    if outages:
        ends_ms = max(fault.at_ms + outage_ms(fault) for fault in outages)
        faults_until_ms = max(faults_until_ms, ends_ms + AFTER_OUTAGES_MS)
        faults = tuple(sorted((*faults, *outages), key=lambda fault: fault.at_ms))
    drawn = Scenario(
        seed=seed,
        topics=tuple(topics),
        load_share=load_share,
        consumers_max=consumers_max,
        faults_until_ms=faults_until_ms,
        delivery_faults=delivery_faults,
        faults=faults,
        is_fenced_by_broker=is_fenced_by_broker,
        restarts_consumers=restarts_consumers,
        carried_by_one=chance.choice((0.0, 0.0, 1.5, 3.0)),
        carried_by_all=chance.choice((0.0, 0.0, 0.0, 0.4)) * consumers_max,
        capacity_is_measured=chance.random() < 0.3,
    )
    drawn = _with_unreadable_table(_with_forgeries(drawn))
    # Draws of its own, so that all other scenarios stay the same.
    lasting = random.Random(f"lasting load {seed}")
    if lasting.random() < LASTING_LOAD_SHARE:
        return _with_lasting_load(drawn, lasting)
    return drawn


def _with_forgeries(drawn: Scenario) -> Scenario:
    """Draws of its own, so that all other scenarios stay the same."""
    chance = random.Random(f"forged messages {drawn.seed}")
    if chance.random() >= FORGERY_SHARE:
        return drawn
    forged = [
        SimulatedFault(
            at_ms=chance.randint(2_500, drawn.faults_until_ms),
            kind=kind,
            pick=chance.randint(0, 1_000),
            size=chance.randint(0, SIZE_MAX),
        )
        for kind in _FORGERIES
        for _ in range(FORGERIES_EACH)
    ]
    return replace(
        drawn, faults=tuple(sorted((*drawn.faults, *forged), key=lambda fault: fault.at_ms))
    )


def _with_unreadable_table(drawn: Scenario) -> Scenario:
    """Draws of its own, so that all other scenarios stay the same."""
    chance = random.Random(f"unreadable table {drawn.seed}")
    has_outages = any(fault.kind in OUTAGES_MS for fault in drawn.faults)
    is_small = sum(drawn.topics) <= UNREADABLE_PARTITIONS_MAX and len(drawn.topics) > 1
    if chance.random() >= UNREADABLE_SHARE or has_outages or not is_small:
        return drawn
    fault = SimulatedFault(
        at_ms=chance.randint(1_000, drawn.faults_until_ms),
        kind=FaultKind.TABLE_UNREADABLE,
        pick=chance.randint(0, 1_000),
        size=chance.randint(0, SIZE_MAX),
    )
    return replace(
        drawn,
        faults=tuple(sorted((*drawn.faults, fault), key=lambda one: one.at_ms)),
        faults_until_ms=max(
            drawn.faults_until_ms, fault.at_ms + outage_ms(fault) + AFTER_OUTAGES_MS
        ),
        patience_s=UNREADABLE_PATIENCE_S,
    )


def _with_lasting_load(drawn: Scenario, chance: random.Random) -> Scenario:
    """The group may grow far beyond its need, and all of its partitions are about as fast."""
    kind = chance.choice(tuple(LastingLoad))
    is_shared = kind is LastingLoad.SHARED_LIMIT
    faults = tuple(fault for fault in drawn.faults if fault.kind not in OUTAGES_MS)
    lasting = replace(
        drawn,
        topics=(chance.randint(9, 14), chance.randint(9, 14)),
        load_share=chance.uniform(0.1, 0.2),
        consumers_max=LASTING_LOAD_CONSUMERS_MAX,
        faults_until_ms=min(drawn.faults_until_ms, 16_000),
        faults=faults[:LASTING_LOAD_FAULTS],
        carried_by_one=0.0 if kind is LastingLoad.BURSTS else 1.5,
        carried_by_all=chance.uniform(3.0, 4.0) if is_shared else 0.0,
        capacity_is_measured=is_shared and chance.random() < 0.5,
        catch_up_share=1.5 if is_shared else 0.5,
        # Many reports long: else the chance of the moment decides whether a growth has helped.
        growth_settle_s=12 if is_shared else 6,
        lasting_load=kind,
    )
    # Draws of its own, so that all other scenarios stay the same.
    grows = random.Random(f"growing load {drawn.seed}").random() < GROWING_LOAD_SHARE
    return replace(lasting, lasting_load_grows=grows and lasting.capacity_is_measured)


def _outages(chance: random.Random, until_ms: int) -> tuple[SimulatedFault, ...]:
    if chance.random() >= OUTAGE_SHARE:
        return ()
    drawn = tuple(
        SimulatedFault(
            at_ms=chance.randint(2_500, until_ms),
            kind=chance.choice(_OUTAGES_OF_OTHERS),
            size=chance.randint(0, SIZE_MAX),
        )
        for _ in range(chance.randint(1, 2))
    )
    # Draws of its own, so that the course of the other outages stays the same.
    spark = random.Random(f"Spark away {[(fault.at_ms, fault.size) for fault in drawn]}")
    return tuple(
        replace(fault, kind=FaultKind.SPARK_AWAY) if spark.random() < SPARK_AWAY_SHARE else fault
        for fault in drawn
    )
