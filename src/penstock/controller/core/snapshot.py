"""The controller's state for people and other programs.

`penstock status`, `plan` and `history` show it, and the demo draws it. Times of the monotonic clock
become ages.
"""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from penstock.controller.core.backlog_trend import backlog_trend
from penstock.controller.core.capacity import (
    Capacities,
    capacities_of,
    capacity_of_consumer,
    capacity_rows,
    measured_by_consumer,
)
from penstock.controller.core.conditions import conditions
from penstock.controller.core.decisions import Decision
from penstock.controller.core.inputs import LogExtent
from penstock.controller.core.load import group_load, problem_of
from penstock.controller.core.objective_cost import SPARES, UTILISATION, PricedObjective
from penstock.controller.core.roll_out import to_replace
from penstock.controller.core.state import ConsumerRecord, HoldingStatus, Phase, State
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.waiting import (
    GroupWaiting,
    Waiting,
    group_waiting,
    of_reported,
)
from penstock.model import ConsumerId, TopicPartition
from penstock.packing.trigger import GroupLoad, Reason
from penstock.settings.objective import is_set

SNAPSHOT_VERSION = 1
# As partitions compare by themselves, in half the time.
_BY_NAME = attrgetter("topic", "partition")


def snapshot(state: State, unix_ms: int, *, is_degraded: bool) -> dict[str, Any]:
    """All that is published of the group."""
    draft = StepDraft(state, state.now_ms)
    load = group_load(draft)
    seen = snapshot_without_question(state, unix_ms, is_degraded=is_degraded, load=lambda: load)
    return {**seen, "question": _question(draft, load)}


def question(state: State) -> dict[str, Any]:
    """What the packer would be asked now; `penstock plan` asks it.

    In a large group it is a third of a snapshot's cost.
    """
    draft = StepDraft(state, state.now_ms)
    return _question(draft, group_load(draft))


def snapshot_without_question(
    state: State,
    unix_ms: int,
    *,
    is_degraded: bool,
    load: Callable[[], GroupLoad] | None = None,
) -> dict[str, Any]:
    policy, speeds, written = state.settings.policy, state.speeds, state.write_speeds
    waiting, usual = group_waiting(state), capacities_of(state)
    consumers = [
        _consumer(state, consumer, record, waiting.by_consumer[consumer], usual)
        for consumer, record in sorted(state.consumers.items())
    ]
    total = waiting.total()
    load = load or (lambda: group_load(StepDraft(state, state.now_ms)))
    found = conditions(state, load, total, is_degraded=is_degraded)
    return {
        "version": SNAPSHOT_VERSION,
        "at_unix_ms": unix_ms,
        # The monotonic clock of the controller's machine, from which the ages are counted.
        "now_ms": state.now_ms,
        "phase": state.phase.value,
        "phase_for_ms": state.now_ms - state.phase_since_ms,
        "reason": _reason(state),
        "controller_epoch": state.controller_epoch,
        "plan_number": state.plan_number,
        "is_degraded": is_degraded,
        "conditions": [{"condition": one.name.value, "reason": one.reason} for one in found],
        "measurement_age_ms": None if speeds is None else state.now_ms - speeds.measured_ms,
        "capacity_bytes_per_s": usual.usual_bytes_per_s,
        # Of each topic, and how it is known.
        "capacity": capacity_rows(state),
        "target_utilisation": policy.target_utilisation,
        "settings": {
            "consumers_min": state.settings.consumers_min,
            "consumers_max": policy.consumers_max,
            "spare_consumers": state.settings.spare_consumers,
            "algorithm": state.settings.algorithm,
            "partitions_per_consumer_max": policy.partitions_per_consumer_max,
        },
        "written_bytes_per_s": sum(written.values()),
        # Counted since this controller started: the difference of two is a speed.
        "carried_bytes": state.carried_bytes,
        **_behind(total, sum(written.values())),
        **_trend(state, total),
        "topic_ids": {} if speeds is None else dict(speeds.topic_ids),
        # Where no ledger offset is known here, the whole log is counted.
        "behind_is_at_most": total.is_at_most,
        "objective_freshness_s": state.settings.objective.freshness_s,
        "behind_unknown": sum(one is None for one in waiting.without_consumer.values()),
        "consumers": consumers,
        "partitions": _partitions(state, waiting),
        "moves": _moves(state),
        "parked": {str(p): parked.reason for p, parked in sorted(state.parked.items())},
        "parked_details": {str(p): one.detail for p, one in state.parked.items() if one.detail},
        "pauses": [
            {"direction": p.direction.value, "until_unix_ms": p.until_unix_ms, "reason": p.reason}
            for p in (*state.pauses, *state.excluded)
        ],
        "held_by_silence": _hold(state),
        "roll_out": _roll_out(state),
        "counts": dict(state.counts),
        "history": [_decision(state, decision) for decision in state.history],
    }


def _reason(state: State) -> dict[str, str] | None:
    """Why the controller does what it does now; None while it changes nothing."""
    if state.phase is Phase.REASSIGN and state.packing_code is not None:
        return {"code": state.packing_code.value, "explanation": state.packing_explanation}
    if state.phase is Phase.GROUP_MANAGEMENT and state.plan is not None:
        return {"code": state.plan.code.value, "explanation": state.plan.explanation}
    return None


def _roll_out(state: State) -> dict[str, Any] | None:
    if state.roll_out is None:
        return None
    roll_out = state.roll_out
    return {
        "request_id": roll_out.request.request_id,
        "requested_by": roll_out.request.requested_by,
        "version": roll_out.version,
        "total": roll_out.total,
        "left": len(to_replace(state.consumers, roll_out)),
        "replacing": roll_out.replacing,
        # Not empty while it is rolled back.
        "fault": roll_out.fault if roll_out.undoes is not None else "",
    }


def _decision(state: State, decision: Decision) -> dict[str, Any]:
    first_ms = decision.at_ms if decision.first_ms is None else decision.first_ms
    return {
        "age_ms": state.now_ms - decision.at_ms,
        "code": decision.code.value,
        "explanation": decision.explanation,
        "plan": decision.plan_number,
        "moves": decision.moves,
        "moved_bytes_per_s": decision.moved_bytes_per_s,
        "times": decision.times,
        "first_age_ms": state.now_ms - first_ms,
    }


def _partitions(state: State, waiting: GroupWaiting) -> dict[str, dict[str, Any]]:
    """Every partition by name. There may be ten thousand: nothing is looked up twice here."""
    speeds, holdings = state.write_speeds, state.holdings
    logs: Mapping[TopicPartition, LogExtent] = {} if state.speeds is None else state.speeds.logs
    found: dict[str, dict[str, Any]] = {}
    for partition in sorted({*speeds, *holdings}, key=_BY_NAME):
        holding, extent = holdings.get(partition), logs.get(partition)
        row: dict[str, Any] = {"write_speed_bytes_per_s": speeds.get(partition)}
        found[str(partition)] = row
        if holding is None:
            row |= {"consumer": None, "status": "unread"}
            row |= _unread(waiting.without_consumer.get(partition), extent)
            continue
        row["consumer"], row["status"] = holding.consumer, holding.status.value
        if extent is not None:
            row["end_offset"] = extent.end_offset
        record = state.consumers.get(holding.consumer)
        if record is not None and record.incarnation == holding.incarnation:
            _add_report(row, state, record, partition)
    return found


def _add_report(
    row: dict[str, Any], state: State, record: ConsumerRecord, partition: TopicPartition
) -> None:
    """Where its consumer is in the log. What is unknown is left out: there are many partitions."""
    next_offset = record.next_offsets.get(partition)
    if next_offset is not None:
        row["next_offset"] = next_offset
    if partition in record.unread_records:
        waiting = of_reported(state, record, partition)
        row["behind_records"] = waiting.records
        if waiting.log_bytes:
            row["behind_bytes"] = round(waiting.log_bytes)


def _behind(waiting: Waiting, written_bytes_per_s: float) -> dict[str, Any]:
    log_bytes = waiting.log_bytes
    return {
        "behind_bytes": None if log_bytes is None else round(log_bytes),
        "behind_records": waiting.records,
        "behind_s": None if log_bytes is None else seconds_behind(log_bytes, written_bytes_per_s),
    }


def _trend(state: State, waiting: Waiting) -> dict[str, Any]:
    """Where the backlog is going, over more than two batches."""
    trend = backlog_trend(state, waiting)
    return {
        "carried_bytes_per_s": trend.carried_bytes_per_s,
        "batch_s": trend.batch_ms / 1_000,
        "backlog": {
            "trend": trend.direction.value,
            "over_s": trend.over_ms / 1_000,
            "left_s": trend.left_s,
        },
    }


def _unread(waiting: Waiting | None, extent: LogExtent | None) -> dict[str, Any]:
    """What waits in a log that nobody reads, and where it begins and ends."""
    return {
        "behind_records": None if waiting is None else waiting.records,
        "behind_bytes": None if waiting is None else waiting.log_bytes,
        "behind_is_at_most": waiting is not None and waiting.is_at_most,
        "start_offset": None if extent is None else extent.start_offset,
        "end_offset": None if extent is None else extent.end_offset,
    }


def _hold(state: State) -> dict[str, Any] | None:
    """The consumers that are silent together, and for how long they are held."""
    shared = state.shared_silence
    if shared is None:
        return None
    for_ms = state.heartbeats.heartbeat_time_ms - shared.since_heartbeat_time_ms
    return {"consumers": [int(consumer) for consumer in shared.consumers], "for_ms": for_ms}


def _consumer(
    state: State,
    consumer: ConsumerId,
    record: ConsumerRecord,
    waiting: Waiting,
    usual: Capacities,
) -> dict[str, Any]:
    held = sorted(state.held_by.get(consumer, ()), key=_BY_NAME)
    written: Mapping[Any, float] = state.write_speeds
    load = sum(written.get(partition, 0.0) for partition in held)
    return {
        "consumer": int(consumer),
        "status": record.status.value,
        "incarnation": record.incarnation,
        "deployment_version": record.deployment_version,
        "occupation": record.occupation,
        "heard_ms_ago": state.now_ms - record.heard_ms if record.heard_ms else None,
        "load_bytes_per_s": load,
        # Of the partitions that it has.
        "capacity_bytes_per_s": capacity_of_consumer(state, consumer, usual),
        "measured_capacity_bytes_per_s": measured_by_consumer(state, consumer),
        "carried_bytes": record.carried_bytes,
        **_behind(waiting, load),
        "partitions": [str(partition) for partition in held],
    }


def seconds_behind(behind_bytes: float, written_bytes_per_s: float) -> float | None:
    """The backlog in seconds of writing: at a steady speed, the age of its oldest record.

    None when there is a backlog and nothing is written: then the age is unknown here.
    """
    if behind_bytes == 0:
        return 0.0
    return None if written_bytes_per_s < 1 else behind_bytes / written_bytes_per_s


def _question(draft: StepDraft, load: GroupLoad) -> dict[str, Any]:
    consumers_max = draft.state.settings.consumers_max
    problem = problem_of(draft, consumers_max, Reason.OVER_CAPACITY, load)
    weights = capacities_of(draft.state).weights
    return {
        "load_bytes_per_s": _without_weights(problem.load_bytes_per_s, weights),
        # By topic: a partition's load counts so much for the capacities.
        "weights": dict(weights),
        "current": {str(c): [str(p) for p in held] for c, held in problem.current.items()},
        "capacity_bytes_per_s": problem.capacity_bytes_per_s,
        "capacity_bytes_per_s_by_consumer": {
            str(c): x for c, x in problem.capacity_bytes_per_s_by_consumer.items()
        },
        "partitions_per_consumer_max": problem.partitions_per_consumer_max,
        "consumers_max": problem.consumers_max,
        "forecast_bytes_per_s": _without_weights(problem.forecast_bytes_per_s, weights),
        "objective": _priced(draft.state).data(),
    }


def _priced(state: State) -> PricedObjective:
    settings, chosen = state.settings, state.chosen
    return PricedObjective(
        settings.objective,
        state.followed,
        settings.policy.target_utilisation,
        settings.spare_consumers,
        frozenset(
            option
            for option in (UTILISATION, SPARES)
            if option in state.overrides or is_set(chosen, option)
        ),
    )


def _without_weights(
    load: Mapping[TopicPartition, float], weights: Mapping[str, float]
) -> dict[str, float]:
    """People see real bytes."""
    if not weights:
        return {str(p): x for p, x in load.items()}
    return {str(p): x / weights.get(p.topic, 1.0) for p, x in load.items()}


def _moves(state: State) -> list[dict[str, Any]]:
    """Partitions that are not in their final state, with where they should be."""
    plan = state.plan
    moves = []
    for partition in sorted({*state.in_flight, *(plan.open if plan else ())}):
        holding = state.holdings.get(partition)
        moves.append(
            {
                "partition": str(partition),
                "at": None if holding is None else int(holding.consumer),
                "to": None if plan is None else plan.target.get(partition),
                "status": "waiting" if holding is None else holding.status.value,
            }
        )
    return [
        move for move in moves if move["status"] != HoldingStatus.OWNED or move["at"] != move["to"]
    ]
