"""A change of deployments, one consumer after the other, while the group keeps running.

For each consumer of the old version a new one is created and takes all its partitions by an
ordinary plan; then the old one is removed. At the maximum of consumers the others take the
partitions instead. A replacement that does not come up ends the roll-out, and the answer says so.
"""

from dataclasses import replace

from penstock.controller.core.decisions import Code
from penstock.controller.core.effects import SetDeploymentTemplate
from penstock.controller.core.group_management import enter as manage_group
from penstock.controller.core.housekeeping import idle
from penstock.controller.core.inputs import NewSettings
from penstock.controller.core.load import available, group_load, owner_of
from penstock.controller.core.membership import begin_leaving, remove, want_one_more
from penstock.controller.core.plan import adopt
from penstock.controller.core.service_answers import answer
from penstock.controller.core.state import ConsumerStatus, Phase, RollOut
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.transitions import go
from penstock.messages import ServiceOutcome, UpdateDeployments
from penstock.model import ConsumerId, TopicPartition
from penstock.model.sentences import counted


def begin(draft: StepDraft, request: UpdateDeployments, new: NewSettings | None = None) -> None:
    version = draft.state.deployment_version + 1
    total = len(draft.consumers)
    draft.change(deployment_version=version, roll_out=RollOut(request, version, total))
    if new is None:
        draft.do(SetDeploymentTemplate(version, request))
    else:
        draft.do(SetDeploymentTemplate(version, request, new.consumers_file, new.consumers_digest))
    draft.save()


def _answer(
    draft: StepDraft, roll_out: RollOut, outcome: ServiceOutcome, detail: str, left: int
) -> None:
    done = max(0, roll_out.total - left)
    answer(draft, roll_out.request.request_id, outcome, detail, (done, roll_out.total))


def advance(draft: StepDraft) -> bool:
    """Go on with the roll-out, if there is one. True when a plan was made for it."""
    roll_out = draft.state.roll_out
    if roll_out is None:
        return False
    old = [c for c, r in draft.consumers.now.items() if r.deployment_version < roll_out.version]
    if roll_out.replacing is not None and roll_out.replacing not in draft.consumers:
        roll_out = replace(roll_out, replacing=None, replacement=None)
        draft.change(roll_out=roll_out)
        explanation = f"{counted(len(old), 'consumer')} of the old version left"
        _answer(draft, roll_out, ServiceOutcome.IN_PROGRESS, explanation, len(old))
    if roll_out.replacing is None:
        if not old:
            _answer(draft, roll_out, ServiceOutcome.DONE, "every consumer is replaced", 0)
            draft.change(roll_out=None)
            draft.save()
            return False
        roll_out = _choose_next(draft, roll_out, sorted(old))
    return _replace_one(draft, roll_out)


def _choose_next(draft: StepDraft, roll_out: RollOut, old: list[ConsumerId]) -> RollOut:
    """Remove idle consumers of the old version; then replace the lowest number."""
    resting = [consumer for consumer in idle(draft) if consumer in old]
    for consumer in resting:
        remove(draft, consumer, "idle, and of the old version")
    old = [consumer for consumer in old if consumer not in resting]
    if not old:
        return roll_out
    warm = idle(draft)
    replacement = warm[0] if warm else want_one_more(draft)
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
            _answer(draft, roll_out, ServiceOutcome.FAILED, explanation, left)
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
    adopt(draft, target, Code.ROLL_OUT, explanation)
    go(draft, Phase.GROUP_MANAGEMENT, "a plan is made")
    manage_group(draft)
    return True


def _target_without(
    draft: StepDraft, leaving: ConsumerId, replacement: ConsumerId | None
) -> dict[TopicPartition, ConsumerId] | None:
    """All partitions stay but those of the leaving one; None when no other consumer is left."""
    group = group_load(draft)
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
