"""The group at a glance: figures, what the controller does now, and why, in words."""

from collections import Counter

from penstock.controller.core.capacity_text import capacity_text
from penstock.controller.core.told_status import progress_text
from penstock.model.sentences import counted, shortened_list
from penstock.page.core.view import Json, View

MOVES_SHOWN = 50


def summary(view: View, *, fewest: int | None, needed: int | None) -> Json:
    """`fewest` is a bound that no packing beats; `needed` is what the packer would use now."""
    snapshot = view.snapshot
    longest = view.longest_behind()
    age_ms = snapshot["measurement_age_ms"]
    is_well = not snapshot["conditions"] and not snapshot["is_stale"]
    return {
        "is_well": is_well,
        # How a group without conditions is, in the words of `penstock status`.
        "progress": progress_text(snapshot, view.carried.get(None)) if is_well else None,
        "now": what_happens(view),
        "conditions": snapshot["conditions"],
        "speed": {
            "written_bytes_per_s": snapshot["written_bytes_per_s"],
            "carried_bytes_per_s": view.carried.get(None),
            "measurement_age_s": None if age_ms is None else age_ms / 1000,
        },
        # Absent in the status of an older controller.
        "freshness_s": snapshot.get("freshness_s"),
        "freshness_at_least_s": snapshot.get("freshness_at_least_s"),
        "backlog": {
            "records": snapshot["behind_records"],
            "bytes": snapshot["behind_bytes"],
            "seconds": snapshot["behind_s"],
            "is_at_most": snapshot["behind_is_at_most"],
            "unknown_partitions": snapshot["behind_unknown"],
            **_trend(snapshot),
            "longest": None
            if longest is None
            else {"partition": longest[0], "seconds": longest[1]},
        },
        "consumers": _consumers(view, fewest, needed),
        "partitions": _partitions(view),
        "moves": _moves(view),
        "capacity": {
            "capacity_bytes_per_s": view.capacity_bytes_per_s,
            "target_utilisation": view.target_utilisation,
            "target_bytes_per_s": view.capacity_bytes_per_s * view.target_utilisation,
            # How it is known and how far it spreads, in words; an older controller does not say it.
            "sentence": capacity_text(snapshot) or None,
            "source": snapshot.get("capacity", {}).get("source"),
            "topics": snapshot.get("capacity", {}).get("topics", {}),
        },
        "controller": {
            "phase": snapshot["phase"],
            "phase_for_s": snapshot["phase_for_ms"] / 1000,
            "epoch": snapshot["controller_epoch"],
            "plan": snapshot["plan_number"],
            "algorithm": snapshot["settings"]["algorithm"],
        },
        "pauses": snapshot["pauses"],
        "roll_out": snapshot["roll_out"],
        "held_by_silence": snapshot["held_by_silence"],
    }


def _trend(snapshot: Json) -> Json:
    """Where the backlog is going; a controller of an older version does not say it."""
    found = snapshot.get("backlog") or {}
    return {"trend": found.get("trend"), "left_s": found.get("left_s")}


def _consumers(view: View, fewest: int | None, needed: int | None) -> Json:
    rows = view.snapshot["consumers"]
    by_status = Counter(one["status"] for one in rows)
    starting = sum(by_status[one] for one in ("queried", "wanted", "creating"))
    ready, ending = by_status["ready"], by_status["leaving"]
    settings = view.snapshot["settings"]
    return {
        "fewest_possible": fewest,
        "needed": needed,
        "wanted": ready + starting,
        "running": ready + ending,
        "ready": ready,
        "starting": starting,
        "ending": ending,
        "idle": sum(one["status"] == "ready" and not one["partitions"] for one in rows),
        "minimum": settings["consumers_min"],
        "maximum": settings["consumers_max"],
        "spare": settings["spare_consumers"],
    }


def _partitions(view: View) -> Json:
    states = Counter(view.state_of(name) for name in view.partitions)
    marks = Counter(mark for name in view.partitions for mark in view.marks_of(name))
    return {
        "total": len(view.partitions),
        **{
            state: states[state]
            for state in ("owned", "moving", "starting", "stopping", "stopped", "unread")
        },
        **{mark: marks[mark] for mark in ("hot", "oversize", "behind")},
    }


def _moves(view: View) -> Json:
    moves = list(view.moves.values())
    shown = [
        {"partition": m["partition"], "from": m["at"], "to": m["to"], "status": m["status"]}
        for m in moves[:MOVES_SHOWN]
    ]
    return {"open": len(moves), "shown": shown}


def what_happens(view: View) -> Json:
    """What the controller does now, and why; a controller of an older version does not say why."""
    reason = view.snapshot.get("reason")
    return {
        "sentence": _sentence(view),
        "why": None if reason is None else reason["explanation"],
        "code": None if reason is None else reason["code"],
    }


_BY_PHASE = {
    "Synchronize": "The controller asks every consumer what it owns.",
    "Reassign": "The controller packs the partitions anew.",
    "Superseded": "A newer controller leads the group.",
}


def _sentence(view: View) -> str:
    phase, moves = view.snapshot["phase"], list(view.moves.values())
    if phase in _BY_PHASE:
        return _BY_PHASE[phase]
    held = view.snapshot["held_by_silence"]
    if held:
        silent = counted(len(held["consumers"]), "consumer")
        return f"{silent} silent together: the controller waits before it replaces them."
    if moves:
        names = shortened_list([one["partition"] for one in moves], 3)
        return f"{counted(len(moves), 'partition')} on the way to another consumer: {names}."
    if phase == "Group Management":
        return "The controller leads the group to its plan."
    return "Nothing needs to change."
