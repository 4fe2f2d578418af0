"""The controller's state as it is saved, and checked when it is read back.

`state_directory` adds a head and a checksum and writes it to disk. A state that is refused here is
ignored: synchronisation rebuilds it from the consumers' answers. Settings are not saved, because
the operator's file has them; what requests changed of them is.
"""

import json
import math
from typing import Any

from penstock.controller.core.capacity import Source
from penstock.controller.core.decisions import Code, Decision
from penstock.controller.core.settings import LiveChange, by_option, controller_settings
from penstock.controller.core.state import (
    BoundsRequest,
    ConsumerRecord,
    ConsumerStatus,
    GrowthLimit,
    Holding,
    HoldingStatus,
    KnownCapacity,
    PauseRecord,
    Phase,
    Plan,
    RollOut,
    State,
)
from penstock.messages import Direction, UpdateDeployments
from penstock.model import ConsumerId, Epoch, TopicPartition
from penstock.model.epoch import INTEGER_MAX
from penstock.packing.problem import CAPACITY_BYTES_PER_S_MIN
from penstock.settings.sections import Settings
from penstock.state_directory import state_file
from penstock.state_directory.state_file import BrokenState

OWNER = "controller"
# Leaves room to count on. A higher one is forged or damaged, and would end every controller.
COUNTED_MAX = INTEGER_MAX // 2


def encode_state(state: State) -> bytes:
    return state_file.encode_state(OWNER, state_as_json(state))


def decode_state(raw: bytes, chosen: Settings) -> State | BrokenState:
    """The saved state, or why it cannot be used. Never raises, whatever the file holds."""
    content = state_file.decode_state(OWNER, raw)
    return content if isinstance(content, BrokenState) else read_content(content, chosen)


def read_content(content: dict[str, Any], chosen: Settings) -> State | BrokenState:
    """The content of a state file as a state of a controller with these settings."""
    try:
        return state_from_json(content, chosen)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return BrokenState(f"a field is wrong: {type(error).__name__}")


def lasting_state_as_json(state: State) -> dict[str, Any]:
    """What no consumer can tell a controller that has no file: changed settings, pauses, history.

    It stays small however large the group is: what consumers hold is found by synchronisation.
    """
    roll_out = state.roll_out
    return {
        "phase": state.phase.value,
        "controller_epoch": state.controller_epoch,
        "plan_number": state.plan_number,
        "epochs_used": state.epochs_used,
        "queries_sent": state.queries_sent,
        "deployment_version": state.deployment_version,
        "overrides": dict(state.overrides),
        "override_origins": {
            option: [one.request_id, one.requested_by, one.at_ms, one.instead_of, one.was_set]
            for option, one in state.override_origins.items()
        },
        "consumers": {},
        "departing": [],
        "incarnation_floor": {str(c): floor for c, floor in state.incarnation_floor.items()},
        "holdings": {},
        "plan": None,
        "pauses": [
            [p.direction.value, p.until_unix_ms, p.reason, p.request_id] for p in state.pauses
        ],
        "roll_out": None
        if roll_out is None
        else {
            "request": roll_out.request.model_dump(mode="json", exclude_none=True),
            "version": roll_out.version,
            "total": roll_out.total,
            "is_tried": roll_out.is_tried,
            "failed_before": sorted(str(p) for p in roll_out.failed_before),
            "fault": roll_out.fault,
            "undoes": roll_out.undoes,
        },
        "growth_limit": None
        if state.growth_limit is None
        else [
            state.growth_limit.consumers_max,
            state.growth_limit.until_ms,
            state.growth_limit.written_bytes_per_s,
        ],
        "capacity_size": state.capacity_size,
        "confirmed_bytes_per_s": state.confirmed_bytes_per_s,
        "capacities": {
            topic: [one.bytes_per_s, one.lowest_bytes_per_s, one.highest_bytes_per_s, one.source]
            for topic, one in state.capacities.items()
        },
        "starts_took_ms": list(state.starts_took_ms),
        "avoided_numbers": {str(c): until_ms for c, until_ms in state.avoided_numbers.items()},
        "requests": list(state.requests),
        "bounds_requests": [
            [r.request_id, dict(r.wanted), r.held_by] for r in state.bounds_requests
        ],
        "history": [
            [
                d.at_ms,
                d.code.value,
                d.explanation,
                d.plan_number,
                d.moves,
                d.moved_bytes_per_s,
                d.times,
                d.first_ms,
            ]
            for d in state.history
        ],
        "counts": dict(state.counts),
    }


def state_as_json(state: State) -> dict[str, Any]:
    plan = state.plan
    return lasting_state_as_json(state) | {
        "consumers": {
            str(c): [r.status.value, r.incarnation, r.deployment_version]
            for c, r in state.consumers.items()
        },
        "departing": [int(c) for c in state.departing],
        # Of the others the consumers that have them tell it.
        "ledger_offsets": {
            str(p): offset for p, offset in state.ledger_offsets.items() if p not in state.holdings
        },
        "holdings": {
            str(p): [h.consumer, h.incarnation, str(h.epoch), h.status.value]
            for p, h in state.holdings.items()
        },
        "plan": None
        if plan is None
        else {
            "number": plan.number,
            "code": plan.code.value,
            "explanation": plan.explanation,
            "target": {str(p): c for p, c in plan.target.items()},
            "open": sorted(str(p) for p in plan.open),
        },
    }


def state_from_json(saved: dict[str, Any], chosen: Settings) -> State:
    holdings = {
        TopicPartition.parse(name): Holding(
            ConsumerId(int(row[0])),
            int(row[1]),
            Epoch.parse(row[2]),
            HoldingStatus(row[3]),
            0,
            0,
        )
        for name, row in saved["holdings"].items()
    }
    held_by: dict[ConsumerId, set[TopicPartition]] = {}
    for partition, holding in holdings.items():
        held_by.setdefault(holding.consumer, set()).add(partition)
    return State(
        phase=Phase(saved["phase"]),
        controller_epoch=_counted_on(saved["controller_epoch"]),
        plan_number=_counted_on(saved["plan_number"]),
        epochs_used=_counted_on(saved["epochs_used"]),
        queries_sent=_counted_on(saved["queries_sent"]),
        deployment_version=_counted_on(saved["deployment_version"]),
        chosen=chosen,
        settings=controller_settings(chosen),
        overrides=by_option({str(name): value for name, value in saved["overrides"].items()}),
        consumers={
            ConsumerId(int(c)): ConsumerRecord(
                ConsumerStatus(row[0]), 0, incarnation=int(row[1]), deployment_version=int(row[2])
            )
            for c, row in saved["consumers"].items()
        },
        departing={ConsumerId(int(c)): 0 for c in saved["departing"]},
        incarnation_floor={
            ConsumerId(int(c)): _counted_on(f) for c, f in saved["incarnation_floor"].items()
        },
        holdings=holdings,
        held_by={c: frozenset(partitions) for c, partitions in held_by.items()},
        in_flight=frozenset(p for p, h in holdings.items() if h.status is not HoldingStatus.OWNED),
        ledger_offsets={
            TopicPartition.parse(name): int(offset)
            for name, offset in saved.get("ledger_offsets", {}).items()
        },
        plan=_plan(saved["plan"]),
        pauses=tuple(
            PauseRecord(Direction(p[0]), p[1], str(p[2]), str(p[3])) for p in saved["pauses"]
        ),
        roll_out=_roll_out(saved["roll_out"]),
        requests=tuple(str(r) for r in saved["requests"]),
        # What has `get` is absent in the files of older releases.
        override_origins={
            str(option): LiveChange(str(row[0]), str(row[1]), int(row[2]), *row[3:5])
            for option, row in saved.get("override_origins", {}).items()
        },
        growth_limit=_growth_limit(saved.get("growth_limit")),
        capacity_size=int(saved.get("capacity_size", 0)),
        confirmed_bytes_per_s=float(saved.get("confirmed_bytes_per_s", 0.0)),
        capacities={
            str(topic): _topic_capacity(row) for topic, row in saved.get("capacities", {}).items()
        },
        starts_took_ms=tuple(int(took_ms) for took_ms in saved.get("starts_took_ms", ())),
        avoided_numbers={
            ConsumerId(int(c)): int(until_ms)
            for c, until_ms in saved.get("avoided_numbers", {}).items()
        },
        bounds_requests=tuple(
            _bounds_request(row, saved["overrides"]) for row in saved.get("bounds_requests", ())
        ),
        history=tuple(_decision(row) for row in saved["history"]),
        counts={str(name): int(number) for name, number in saved["counts"].items()},
    )


def _counted_on(saved: Any) -> int:
    """A number from which a controller counts on; no message may have one above INTEGER_MAX."""
    number = int(saved)
    if not 0 <= number <= COUNTED_MAX:
        raise ValueError("no group has counted so far")
    return number


def _decision(row: list[Any]) -> Decision:
    # Older releases saved no repetitions.
    times, first_ms = (row[6], row[7]) if len(row) > 6 else (1, None)
    return Decision(
        int(row[0]),
        Code(row[1]),
        str(row[2]),
        int(row[3]),
        int(row[4]),
        float(row[5]),
        int(times),
        None if first_ms is None else int(first_ms),
    )


def _bounds_request(row: Any, overrides: dict[str, Any]) -> BoundsRequest:
    if isinstance(row, str):  # an older release saved only the id, and knew two bounds
        bounds = {n: v for n, v in overrides.items() if n in {"consumers_min", "consumers_max"}}
        return BoundsRequest(row, bounds)
    wanted = {str(name): int(number) for name, number in row[1].items()}
    return BoundsRequest(str(row[0]), wanted, str(row[2]))


def _growth_limit(saved: list[Any] | None) -> GrowthLimit | None:
    return None if saved is None else GrowthLimit(int(saved[0]), int(saved[1]), float(saved[2]))


def _topic_capacity(row: list[Any]) -> KnownCapacity:
    bytes_per_s, lowest, highest = (float(figure) for figure in row[:3])
    if not CAPACITY_BYTES_PER_S_MIN <= lowest <= bytes_per_s <= highest < math.inf:
        raise ValueError("not a capacity")
    return KnownCapacity(bytes_per_s, lowest, highest, Source(row[3]).value)


def _plan(saved: dict[str, Any] | None) -> Plan | None:
    if saved is None:
        return None
    return Plan(
        number=int(saved["number"]),
        code=Code(saved["code"]),
        explanation=str(saved["explanation"]),
        target={TopicPartition.parse(p): ConsumerId(int(c)) for p, c in saved["target"].items()},
        open=frozenset(TopicPartition.parse(p) for p in saved["open"]),
        made_ms=0,
    )


def _roll_out(saved: dict[str, Any] | None) -> RollOut | None:
    if saved is None:
        return None
    request = UpdateDeployments.model_validate_json(json.dumps(saved["request"]))
    undoes = saved.get("undoes")
    return RollOut(
        request,
        int(saved["version"]),
        int(saved["total"]),
        # An older release tried nothing, and had deployed the new version already.
        is_tried=bool(saved.get("is_tried", True)),
        failed_before=frozenset(TopicPartition.parse(p) for p in saved.get("failed_before", ())),
        fault=str(saved.get("fault", "")),
        undoes=None if undoes is None else int(undoes),
    )
