"""Injects the faults of a scenario. Each fault picks its victim among what exists."""

from collections.abc import Callable

from penstock.controller.core.inputs import Requested
from penstock.laboratory.protocol_simulation.scenario import (
    BAD_DEPLOYMENT,
    FaultKind,
    SimulatedFault,
    outage_ms,
)
from penstock.laboratory.protocol_simulation.simulated_consumer import SimulatedConsumer
from penstock.laboratory.protocol_simulation.simulated_group import (
    ABSURD_BYTES_PER_S,
    LOG_END_AHEAD,
    SimulatedGroup,
)
from penstock.messages import (
    ChangeSettings,
    ConsumerPhase,
    ConsumerReport,
    Direction,
    PartitionToStart,
    Pause,
    ServiceRequest,
    StartConsumingCommand,
    StateQuery,
    UpdateDeployments,
)
from penstock.model import ConsumerId


def inject(group: SimulatedGroup, fault: SimulatedFault) -> None:
    """Inject the fault, and count it if it found a victim."""
    if _INJECTIONS[fault.kind](group, fault):
        group.count_event(fault.kind.value)


def _process(group: SimulatedGroup, fault: SimulatedFault) -> SimulatedConsumer | None:
    alive = [p for p in group.deployment.alive() if not p.is_paused]
    # Prefer consumers that read something.
    busy = [p for p in alive if p.ownership.owned] or alive
    return busy[fault.pick % len(busy)] if busy else None


def _controller_crash(group: SimulatedGroup, _: SimulatedFault) -> bool:
    leader = group.leader
    if leader is not None:
        leader.crash()
    return leader is not None


def _controller_crash_at_effect(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    leader = group.leader
    if leader is not None:
        leader.effects_until_crash = 1 + fault.size % 40
    return leader is not None


def _second_controller(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    """A second controller starts; the old one, perhaps paused, goes on a little later."""
    old = group.leader
    if old is None:
        return False
    if fault.pick % 2:
        old.pause()
    group.start_controller()
    group.clock.after(200 + fault.size * 5, old.resume)
    return True


def _state_file(*, restore_old: bool) -> Callable[[SimulatedGroup, SimulatedFault], bool]:
    def injection(group: SimulatedGroup, fault: SimulatedFault) -> bool:
        group.lose_state_file(restore_old=restore_old)
        return _controller_crash(group, fault)

    return injection


def _consumer_crash(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    process = _process(group, fault)
    if process is not None:
        group.deployment.crashed(process)
    return process is not None


def _consumer_pause(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    process = _process(group, fault)
    if process is not None:
        process.pause()
        group.clock.after(200 + fault.size * 8, process.resume)
    return process is not None


def _consumer_shutdown(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    process = _process(group, fault)
    if process is not None:
        process.shut_down()
    return process is not None


def _flag(name: str) -> Callable[[SimulatedGroup, SimulatedFault], bool]:
    def injection(group: SimulatedGroup, fault: SimulatedFault) -> bool:
        process = _process(group, fault)
        if process is not None:
            setattr(process, name, True)
        return process is not None

    return injection


def _node_unreachable(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    """A consumer is paused for long, and a deletion does not end it."""
    group.deployment.unreachable_next += 1
    return _consumer_pause(group, SimulatedFault(fault.at_ms, fault.kind, fault.pick, 1_000))


def _creation_fails(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    group.deployment.creations_to_fail += 1 + fault.size % 3
    return _consumer_crash(group, fault)


def _never_comes_up(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    group.deployment.never_up_next += 1
    return _consumer_crash(group, fault)


def _list_is_stale(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    group.deployment.stale_list_next = True
    return _controller_crash(group, fault)


def _listing_fails(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    """The back-end cannot list for a while, just when a controller starts and needs the list."""
    group.deployment.listings_to_fail += 1 + fault.size % 4
    return _controller_crash(group, fault)


def _foreign_consumer(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    """A consumer is deployed by hand."""
    consumer = ConsumerId(max(group.deployment.deployed, default=0) + 1 + fault.pick % 3)
    group.deployment.deployed[consumer] = 0
    group.deployment.start(consumer)
    return True


def _monitor_silent(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    group.monitor_silent_until_ms = group.clock.now_ms + 1_000 + fault.size * 10
    return True


def _monitor_lies(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    """One measurement is absurd."""
    group.lies_next.append(ABSURD_BYTES_PER_S if fault.pick % 2 else 0.0)
    return True


def _monitor_blind(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    """Some measurements name no partition at all."""
    group.lies_next += [None] * (1 + fault.size % 5)
    return True


def _monitor_late(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    group.monitor_late_until_ms = group.clock.now_ms + 1_000 + fault.size * 5
    return True


def _hot_partition(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    """One partition becomes faster than a consumer, or nearly so."""
    names = sorted(group.logs)
    if names:
        factor = (0.7, 0.95, 1.5, 3.0)[fault.size % 4]
        log = group.logs[names[fault.pick % len(names)]]
        log.set_speed(group.clock.now_ms, factor * group.capacity_bytes_per_s)
    return bool(names)


def _packer_fails(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    group.packer_fails_next += 1
    return _load_changes(group, fault)


def _load_changes(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    """Some partitions get faster or slower, perhaps beyond the capacity of the group."""
    names = sorted(group.logs)
    for number, partition in enumerate(names):
        if (number + fault.pick) % 3 == 0:
            log = group.logs[partition]
            factor = (0.1, 0.5, 2.0, 4.0)[fault.size % 4]
            free = group.free_bytes_per_s(without=partition)
            limit = min(free, group.capacity_bytes_per_s * 0.6)
            log.set_speed(group.clock.now_ms, max(1.0, min(log.records_per_s * factor, limit)))
    return bool(names)


def _topic(group: SimulatedGroup, fault: SimulatedFault) -> str | None:
    topics = sorted({p.topic for p in group.logs})
    return topics[fault.pick % len(topics)] if topics else None


def _partitions_added(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    topic = _topic(group, fault)
    if topic is not None and len(group.logs) < 200:
        group.grow_topic(topic, 1 + fault.size % 3)
    return topic is not None


def _topic_deleted(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    topic = _topic(group, fault)
    if topic is None or len({p.topic for p in group.logs}) < 2:
        return False
    group.delete_topic(topic)
    return True


def _topic_made_again(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    topic = _topic(group, fault)
    if topic is None:
        return False
    partitions = sum(1 for p in group.logs if p.topic == topic)
    group.delete_topic(topic)
    group.make_topic(topic, partitions)
    return True


def _request(
    make: Callable[[SimulatedFault, str], ServiceRequest],
) -> Callable[[SimulatedGroup, SimulatedFault], bool]:
    def injection(group: SimulatedGroup, fault: SimulatedFault) -> bool:
        request = make(fault, f"r-{fault.at_ms}-{fault.pick}")
        for controller in group.controllers:
            controller.send_input(lambda now: Requested(now, request))
        return bool(group.controllers)

    return injection


def _pause(fault: SimulatedFault, name: str) -> ServiceRequest:
    direction = tuple(Direction)[fault.pick % 3]
    return Pause(request_id=name, direction=direction, until_unix_ms=fault.at_ms + fault.size * 5)


def _settings(fault: SimulatedFault, name: str) -> ServiceRequest:
    return ChangeSettings(request_id=name, spare_consumers=fault.pick % 3)


def _update(fault: SimulatedFault, name: str) -> ServiceRequest:
    return UpdateDeployments(request_id=name, environment={"APP_X": str(fault.pick)})


def ask_for_bad_deployment(group: SimulatedGroup) -> None:
    """Its consumers stop every partition that they start."""
    request = UpdateDeployments(request_id="bad", environment={BAD_DEPLOYMENT: "1"})
    for controller in group.controllers:
        controller.send_input(lambda now: Requested(now, request))


# Outages of what all consumers share


def _broker_away(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    """Nothing passes; what is sent meanwhile arrives when the broker is back."""
    group.let_the_broker_go(group.clock.now_ms + outage_ms(fault))
    return True


def _controller_pause(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    leader = group.leader
    if leader is not None:
        leader.pause()
        group.clock.after(outage_ms(fault), leader.resume)
    return leader is not None


def _away(name: str) -> Callable[[SimulatedGroup, SimulatedFault], bool]:
    """The lake, or the Spark server that all consumers share."""

    def inject(group: SimulatedGroup, fault: SimulatedFault) -> bool:
        setattr(group, name, max(getattr(group, name), group.clock.now_ms + outage_ms(fault)))
        return True

    return inject


def _table_unreadable(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    """One of several tables is broken; and the load asks for moves."""
    topics = sorted({partition.topic for partition in group.logs})
    if len(topics) < 2:
        return False
    topic = topics[fault.pick % len(topics)]
    group.unreadable_tables.add(topic)
    group.clock.after(outage_ms(fault), lambda: group.unreadable_tables.discard(topic))
    return _load_changes(group, SimulatedFault(fault.at_ms, fault.kind, fault.pick, 3))


def _slow_starts(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    """Consumers that are created now take minutes; and the load asks for some."""
    group.deployment.slow_start_ms = outage_ms(fault)
    group.deployment.slow_starts_until_ms = group.clock.now_ms + outage_ms(fault)
    return _load_changes(group, SimulatedFault(fault.at_ms, fault.kind, fault.pick, 3))


def _long_batches(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    group.long_batch_ms = outage_ms(fault)
    group.long_batches_until_ms = group.clock.now_ms + outage_ms(fault)
    return _load_changes(group, SimulatedFault(fault.at_ms, fault.kind, fault.pick, 3))


# What somebody forges


def _forged_epoch(group: SimulatedGroup, fault: SimulatedFault) -> int:
    """An epoch that the log could hold, or one beyond its end."""
    return group.newest_epoch + 1 + (fault.size if fault.pick % 2 else LOG_END_AHEAD + fault.size)


def _forged_orders(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    """A query or a start in a consumer's mailbox that the leading controller did not write."""
    process = _process(group, fault)
    if process is None:
        return False
    epoch = _forged_epoch(group, fault)
    head = {"consumer_id": process.consumer, "controller_epoch": epoch, "plan_number": 1}
    if fault.size % 2:
        process.deliver_forged(StateQuery(**head, query_number=1))
        return True
    rows = tuple(
        PartitionToStart(topic=p.topic, partition=p.partition, epoch=f"{epoch}.1")
        for p in sorted(group.logs)[:1]
    )
    if rows:
        incarnation = process.ownership.incarnation
        process.deliver_forged(
            StartConsumingCommand(**head, incarnation=incarnation, partitions=rows)
        )
    return bool(rows)


def _forged_report(group: SimulatedGroup, fault: SimulatedFault) -> bool:
    """A report in a consumer's name that has obeyed a controller which never was."""
    leader, process = group.leader, _process(group, fault)
    if leader is None or process is None:
        return False
    leader.receive(
        ConsumerReport(
            consumer_id=process.consumer,
            incarnation=process.ownership.incarnation,
            sequence=process.ownership.sequence + 1,
            controller_epoch=_forged_epoch(group, fault),
            plan_number=1,
            report_number=1,
            phase=ConsumerPhase.RUNNING,
        )
    )
    return True


_INJECTIONS: dict[FaultKind, Callable[[SimulatedGroup, SimulatedFault], bool]] = {
    FaultKind.CONTROLLER_CRASH: _controller_crash,
    FaultKind.CONTROLLER_CRASH_AT_EFFECT: _controller_crash_at_effect,
    FaultKind.SECOND_CONTROLLER: _second_controller,
    FaultKind.STATE_FILE_LOST: _state_file(restore_old=False),
    FaultKind.STATE_FILE_OLD: _state_file(restore_old=True),
    FaultKind.CONSUMER_CRASH: _consumer_crash,
    FaultKind.CONSUMER_PAUSE: _consumer_pause,
    FaultKind.CONSUMER_SHUTDOWN: _consumer_shutdown,
    FaultKind.BATCH_HANGS: _flag("hangs_next"),
    FaultKind.COMMIT_OUTCOME_UNKNOWN: _flag("outcome_unknown_next"),
    FaultKind.TRANSFORMATION_FAILS: _flag("fails_next"),
    FaultKind.NODE_UNREACHABLE: _node_unreachable,
    FaultKind.CREATION_FAILS: _creation_fails,
    FaultKind.NEVER_COMES_UP: _never_comes_up,
    FaultKind.LIST_IS_STALE: _list_is_stale,
    FaultKind.FOREIGN_CONSUMER: _foreign_consumer,
    FaultKind.MONITOR_SILENT: _monitor_silent,
    FaultKind.MONITOR_LIES: _monitor_lies,
    FaultKind.MONITOR_BLIND: _monitor_blind,
    FaultKind.MONITOR_LATE: _monitor_late,
    FaultKind.PACKER_FAILS: _packer_fails,
    FaultKind.LOAD_CHANGES: _load_changes,
    FaultKind.HOT_PARTITION: _hot_partition,
    FaultKind.PARTITIONS_ADDED: _partitions_added,
    FaultKind.TOPIC_DELETED: _topic_deleted,
    FaultKind.TOPIC_MADE_AGAIN: _topic_made_again,
    FaultKind.PAUSE_REQUESTED: _request(_pause),
    FaultKind.SETTINGS_CHANGED: _request(_settings),
    FaultKind.DEPLOYMENTS_UPDATED: _request(_update),
    FaultKind.LISTING_FAILS: _listing_fails,
    FaultKind.BROKER_AWAY: _broker_away,
    FaultKind.CONTROLLER_PAUSE: _controller_pause,
    FaultKind.LAKE_AWAY: _away("lake_away_until_ms"),
    FaultKind.TABLE_UNREADABLE: _table_unreadable,
    FaultKind.SPARK_AWAY: _away("spark_away_until_ms"),
    FaultKind.SLOW_STARTS: _slow_starts,
    FaultKind.LONG_BATCHES: _long_batches,
    FaultKind.FORGED_ORDERS: _forged_orders,
    FaultKind.FORGED_REPORT: _forged_report,
}
