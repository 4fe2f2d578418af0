"""A change of deployments, one consumer after the other, without a stop of the group.

For each consumer of the old version a new one comes up, takes all its partitions by an ordinary
plan, and the old one is removed. At the maximum of consumers the others take them instead. A
replacement that does not come up ends the roll-out, and the answer says so.
"""

from dataclasses import replace

from penstock.controller.core.decisions import Code
from penstock.controller.core.effects import Send, SetDeploymentTemplate
from penstock.controller.core.group_management import enter as manage_group
from penstock.controller.core.housekeeping import idle
from penstock.controller.core.load import available, owner_of, view
from penstock.controller.core.membership import begin_leaving, remove, want
from penstock.controller.core.plan import adopt
from penstock.controller.core.state import ConsumerStatus, Phase, RollOut
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.transitions import go
from penstock.messages import ServiceAnswer, ServiceOutcome, UpdateDeployments
from penstock.model import ConsumerId, TopicPartition


def begin(draft: StepDraft, request: UpdateDeployments) -> None:
    version = draft.state.deployment_version + 1
    total = len(draft.consumers)
    draft.change(deployment_version=version, roll_out=RollOut(request, version, total))
    draft.do(SetDeploymentTemplate(version, request))
    draft.save()


def answer(
    draft: StepDraft, request_id: str, outcome: ServiceOutcome, detail: str, left: int = 0
) -> None:
    roll_out = draft.state.roll_out
    total = None if roll_out is None else roll_out.total
    message = ServiceAnswer(
        request_id=request_id,
        controller_epoch=draft.state.controller_epoch,
        outcome=outcome,
        detail=detail[:100],
        done=None if total is None else max(0, total - left),
        of=total,
    )
    draft.do(Send(message))
    draft.decide(Code.REQUEST_ANSWERED, f"request {request_id}: {outcome.value}, {detail}")


def advance(draft: StepDraft) -> bool:
    """Go on with the roll-out, if there is one. True when a plan was made for it."""
    roll_out = draft.state.roll_out
    if roll_out is None:
        return False
    old = [c for c, r in draft.consumers.now.items() if r.deployment_version < roll_out.version]
    if roll_out.replacing is not None and roll_out.replacing not in draft.consumers:
        roll_out = replace(roll_out, replacing=None, replacement=None)
        draft.change(roll_out=roll_out)
        explanation = f"{len(old)} consumers are left"
        answer(
            draft, roll_out.request.request_id, ServiceOutcome.IN_PROGRESS, explanation, len(old)
        )
    if roll_out.replacing is None:
        if not old:
            answer(draft, roll_out.request.request_id, ServiceOutcome.DONE, "all are replaced")
            draft.change(roll_out=None)
            draft.save()
            return False
        roll_out = _choose_next(draft, roll_out, sorted(old))
    return _replace_one(draft, roll_out)


def _choose_next(draft: StepDraft, roll_out: RollOut, old: list[ConsumerId]) -> RollOut:
    """Idle ones simply go; then the lowest number is replaced."""
    resting = [consumer for consumer in idle(draft) if consumer in old]
    for consumer in resting:
        remove(draft, consumer, "it is of the old version")
    old = [consumer for consumer in old if consumer not in resting]
    if not old:
        return roll_out
    warm = idle(draft)
    replacement: ConsumerId | None = None
    if warm:
        replacement = warm[0]
    elif len(available(draft)) < draft.state.settings.consumers_max:
        replacement = want(draft)
    chosen = replace(roll_out, replacing=old[0], replacement=replacement)
    draft.change(roll_out=chosen)
    draft.save()
    return chosen


def _replace_one(draft: StepDraft, roll_out: RollOut) -> bool:
    leaving, replacement = roll_out.replacing, roll_out.replacement
    if leaving is None:
        return False
    if replacement is not None:
        record = draft.consumers.get(replacement)
        if record is None:
            explanation = f"the replacement of consumer {leaving} did not come up"
            left = sum(
                r.deployment_version < roll_out.version for r in draft.consumers.now.values()
            )
            answer(draft, roll_out.request.request_id, ServiceOutcome.FAILED, explanation, left)
            draft.change(roll_out=None)
            draft.save()
            return False
        if record.status is not ConsumerStatus.READY:
            return False
    target = _target_without(draft, leaving, replacement)
    if target is None:
        return False
    begin_leaving(draft, leaving)
    explanation = f"consumer {leaving} is replaced by one of version {roll_out.version}"
    go(draft, Phase.REASSIGN, "a reassignment is due")
    adopt(draft, target, Code.ROLL_OUT, explanation, is_urgent=False)
    go(draft, Phase.GROUP_MANAGEMENT, "a plan is made")
    manage_group(draft)
    return True


def _target_without(
    draft: StepDraft, leaving: ConsumerId, replacement: ConsumerId | None
) -> dict[TopicPartition, ConsumerId] | None:
    """Everything where it is, but for what leaves; None when it cannot be placed now."""
    group = view(draft)
    others = {c: group.load_by_consumer.get(c, 0.0) for c in available(draft) if c != leaving}
    target: dict[TopicPartition, ConsumerId] = {}
    for partition in sorted(draft.state.write_speeds):
        owner = owner_of(draft, partition)
        if owner is None or owner == leaving:
            owner = replacement or min(others, key=lambda c: (others[c], c), default=None)
            if owner is None:
                return None
            others[owner] = others.get(owner, 0.0) + group.load_bytes_per_s[partition]
        target[partition] = owner
    return target
