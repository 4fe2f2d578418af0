"""When to ask for a new plan: the trigger of the packing room, in the machine's words.

The same code decides in `penstock simulate --trigger` and `penstock up --recommend`, so what they
show is what the controller does. It remembers a little between two looks; that is in the state.
"""

from dataclasses import dataclass, replace

from penstock.controller.core.decisions import Code
from penstock.controller.core.settings import ControllerSettings
from penstock.packing.trigger import (
    GroupLoad,
    Reason,
    TriggerMemory,
    TriggerPolicy,
    after_repack,
    decide,
)

CODES = {
    Reason.UNASSIGNED_PARTITION: Code.UNREAD_PARTITION,
    Reason.OVER_CAPACITY: Code.OVER_CAPACITY,
    Reason.FEWER_CONSUMERS: Code.FEWER_WOULD_DO,
}
REASONS = {code: reason for reason, code in CODES.items()}


@dataclass(frozen=True, slots=True)
class RepackReason:
    code: Code
    explanation: str
    is_urgent: bool


def trigger_policy(settings: ControllerSettings) -> TriggerPolicy:
    return TriggerPolicy(
        capacity_bytes_per_s=settings.capacity_bytes_per_s,
        hysteresis=round(1 - settings.target_utilisation, 12),
        scale_down_period_s=settings.scale_down_period_ms / 1_000,
        consumers_saved_min=settings.consumers_saved_min,
        over_capacity_s=settings.over_capacity_ms / 1_000,
        repack_interval_s=settings.plan_interval_ms / 1_000,
        futile_wait_s=settings.fruitless_backoff_ms / 1_000,
        partitions_per_consumer_max=settings.partitions_per_consumer_max,
        consumers_max=settings.consumers_max,
    )


def judged(
    settings: ControllerSettings, memory: TriggerMemory, group: GroupLoad, now_ms: int
) -> tuple[TriggerMemory, RepackReason | None]:
    """Why a plan is needed now, or None when the group is well as it is."""
    memory, verdict = decide(trigger_policy(settings), memory, group, now_ms / 1_000)
    if not verdict.repack:
        return memory, None
    is_urgent = verdict.reason is not Reason.FEWER_CONSUMERS
    return memory, RepackReason(CODES[verdict.reason], verdict.explanation, is_urgent)


def after_plan(memory: TriggerMemory, code: Code, now_ms: int, *, changed: bool) -> TriggerMemory:
    """What to remember of a plan, or of the packer's answer that led to none."""
    reason = REASONS.get(code, Reason.UNASSIGNED_PARTITION)
    return after_repack(memory, reason, now_ms / 1_000, changed=changed)


def try_again(memory: TriggerMemory) -> TriggerMemory:
    """Something changed: what was in vain may not be any more."""
    return replace(memory, futile_at_s=None)
