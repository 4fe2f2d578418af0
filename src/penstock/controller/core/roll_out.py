"""A change of deployments, one consumer after the other, while the group keeps running.

The new deployment is tried first, where the back-end can do so. Then, for each consumer of the old
version, a new one is created and takes all its partitions by an ordinary plan, and the old one is
removed. At the maximum of consumers the others take the partitions instead; where there are none,
because the maximum is one, the new consumer is one too many until the old one is removed. The next
consumer has its turn only when the new ones have shown that they carry.

If a new consumer cannot be created, does not come up, stops partitions because of its deployment,
or carries nothing, the roll-out is rolled back: the former deployment becomes the newest version,
and the consumers of the failed one are replaced in the same way. The answer says why.
"""

from collections.abc import Mapping
from dataclasses import replace

from penstock.controller.core.changed_topics import measure_anew
from penstock.controller.core.decisions import Code
from penstock.controller.core.effects import (
    RestoreDeploymentTemplate,
    SetDeploymentTemplate,
    TryDeployment,
)
from penstock.controller.core.group_management import enter as manage_group
from penstock.controller.core.housekeeping import idle
from penstock.controller.core.inputs import DeploymentTried, NewSettings
from penstock.controller.core.load import available, group_load, owner_of
from penstock.controller.core.membership import begin_leaving, remove, want_one_more
from penstock.controller.core.new_settings import adopt_settings
from penstock.controller.core.plan import adopt
from penstock.controller.core.roll_out_signs import OF_THE_DEPLOYMENT
from penstock.controller.core.service_answers import answer
from penstock.controller.core.state import ConsumerRecord, ConsumerStatus, Phase, RollOut
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.transitions import go
from penstock.messages import ServiceOutcome, UpdateDeployments
from penstock.model import ConsumerId, TopicPartition
from penstock.model.sentences import counted


def begin(draft: StepDraft, request: UpdateDeployments, new: NewSettings | None = None) -> None:
    """Nothing is deployed differently before it was tried.

    It takes the place of a roll-out that is being rolled back: the request may be the remedy.
    """
    former = draft.state.roll_out
    if former is not None:  # it is being rolled back
        explanation = f"rolled back only in part, by request {request.request_id}: {former.fault}"
        _answer(draft, former, ServiceOutcome.FAILED, explanation, former.total)
    failed_before = frozenset(
        partition
        for partition, parked in draft.parked.now.items()
        if parked.reason in OF_THE_DEPLOYMENT
    )
    version, total = draft.state.deployment_version + 1, len(draft.consumers)
    _ask(draft, RollOut(request, version, total, failed_before=failed_before, new_settings=new))
    draft.save()


def _ask(draft: StepDraft, roll_out: RollOut) -> None:
    draft.change(roll_out=replace(roll_out, is_asked=True))
    draft.do(TryDeployment(roll_out.version, roll_out.request, roll_out.new_settings))


def tried(draft: StepDraft, given: DeploymentTried) -> None:
    """The new deployment was tried: replace the consumers, or refuse the request."""
    roll_out = draft.state.roll_out
    if roll_out is None or roll_out.is_tried or given.version != roll_out.version:
        draft.count("late_trial")
        return
    draft.save()
    if given.refusal:
        _answer(draft, roll_out, ServiceOutcome.REFUSED, given.refusal, roll_out.total)
        draft.change(roll_out=None)
        return
    if given.note:
        draft.decide(Code.ROLL_OUT, f"version {given.version} was not tried before: {given.note}")
    new = roll_out.new_settings
    former = draft.state.chosen if new is not None else None
    roll_out = replace(roll_out, is_tried=True, former_settings=former)
    draft.change(deployment_version=roll_out.version, roll_out=roll_out)
    if new is not None:
        adopt_settings(draft, new.settings)
    draft.do(SetDeploymentTemplate(roll_out.version, roll_out.request, new))


def _answer(
    draft: StepDraft, roll_out: RollOut, outcome: ServiceOutcome, detail: str, left: int
) -> None:
    done = max(0, roll_out.total - left)
    progress = (done, roll_out.total)
    answer(draft, roll_out.request.request_id, outcome, detail, progress)


def advance(draft: StepDraft) -> bool:
    """Go on with the roll-out, if there is one. True when a plan was made for it."""
    roll_out = draft.state.roll_out
    if roll_out is None:
        return False
    if not roll_out.is_tried:
        if not roll_out.is_asked:  # by a former controller, whose answer never came
            _ask(draft, roll_out)
        return False
    if roll_out.undoes is None and roll_out.fault:
        roll_out = _roll_back(draft, roll_out, roll_out.fault)
    old = to_replace(draft.consumers.now, roll_out)
    if roll_out.replacing is not None and roll_out.replacing not in draft.consumers:
        roll_out = replace(roll_out, replacing=None, replacement=None)
        draft.change(roll_out=roll_out)
        which = "old" if roll_out.undoes is None else "failed"
        is_left = "is left" if len(old) == 1 else "are left"
        explanation = f"{counted(len(old), 'consumer')} of the {which} version {is_left}"
        _answer(draft, roll_out, ServiceOutcome.IN_PROGRESS, explanation, len(old))
    if roll_out.replacing is None:
        if roll_out.undoes is None and (unproven := _unproven(draft, roll_out)):
            late = next((c for c in unproven if _is_late(draft, c)), None)
            if late is None:
                return False
            roll_out = _roll_back(draft, roll_out, f"consumer {late} carries nothing")
            old = to_replace(draft.consumers.now, roll_out)
        if not old:
            _end(draft, roll_out)
            return False
        roll_out = _choose_next(draft, roll_out, sorted(old))
    return _replace_one(draft, roll_out)


def to_replace(
    consumers: Mapping[ConsumerId, ConsumerRecord], roll_out: RollOut
) -> list[ConsumerId]:
    """The consumers of older versions; in a roll-back, those of the version that failed."""
    versions = {c: record.deployment_version for c, record in consumers.items()}
    if roll_out.undoes is not None:
        return [c for c, version in versions.items() if version == roll_out.undoes]
    return [c for c, version in versions.items() if version < roll_out.version]


def _unproven(draft: StepDraft, roll_out: RollOut) -> list[ConsumerId]:
    """New consumers that have a topic of which they have not shown yet that they carry it."""
    return [
        consumer
        for consumer, record in sorted(draft.consumers.now.items())
        if record.deployment_version == roll_out.version
        and not {p.topic for p in draft.held_by(consumer)} <= record.proven_topics
    ]


def _is_late(draft: StepDraft, consumer: ConsumerId) -> bool:
    """Whether it neither carries nor says why, for as long as a start may take."""
    since_ms = max(draft.holdings[p].since_heartbeat_time_ms for p in draft.held_by(consumer))
    waited_ms = draft.heartbeat_time_ms - since_ms
    is_explained = bool(draft.consumers[consumer].occupation)
    return waited_ms >= draft.state.settings.creation_timeout_ms and not is_explained


def _roll_back(draft: StepDraft, roll_out: RollOut, why: str) -> RollOut:
    """From now on consumers are deployed as before, under a version of its own."""
    version = roll_out.version + 1
    undoing = replace(
        roll_out,
        version=version,
        undoes=roll_out.version,
        fault=why,
        replacing=None,
        replacement=None,
    )
    draft.change(deployment_version=version, roll_out=undoing)
    if roll_out.former_settings is not None:
        adopt_settings(draft, roll_out.former_settings)
    draft.do(RestoreDeploymentTemplate(version))
    draft.decide(
        Code.ROLLED_BACK,
        f"version {roll_out.version} is rolled back: {why}; version {version} is the former one",
    )
    _answer(draft, roll_out, ServiceOutcome.IN_PROGRESS, f"rolled back: {why}", roll_out.total)
    draft.save()
    return undoing


def _end(draft: StepDraft, roll_out: RollOut) -> None:
    if roll_out.undoes is None:
        _answer(draft, roll_out, ServiceOutcome.DONE, "every consumer is replaced", 0)
    else:
        explanation = f"rolled back: {roll_out.fault}"
        _answer(draft, roll_out, ServiceOutcome.FAILED, explanation, roll_out.total)
        for partition in sorted(draft.parked):
            if draft.parked[partition].reason in OF_THE_DEPLOYMENT:
                draft.parked.drop(partition)  # the former deployment may carry it at once
                draft.reopen(partition)
    measure_anew(draft, roll_out)
    draft.change(roll_out=None)
    draft.save()


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
            _replacement_lost(draft, roll_out, leaving)
            return False
        if record.status is not ConsumerStatus.READY:
            return False
    begin_leaving(draft, leaving)
    if replacement is None and not available(draft):
        # The only one, in a group that may have no second. It does not count any more, and has its
        # partitions until the new one is up.
        replacement = want_one_more(draft)
        draft.change(roll_out=replace(roll_out, replacement=replacement))
    target = _target_without(draft, replacement)
    explanation = f"consumer {leaving} is replaced by one of version {roll_out.version}"
    go(draft, Phase.REASSIGN, "a reassignment is due")
    adopt(draft, target, Code.ROLL_OUT, explanation)
    go(draft, Phase.GROUP_MANAGEMENT, "a plan is made")
    manage_group(draft)
    return True


def _replacement_lost(draft: StepDraft, roll_out: RollOut, leaving: ConsumerId) -> None:
    """It could not be created, did not come up, or is gone again."""
    why = f"the replacement of consumer {leaving} did not come up"
    if roll_out.undoes is None:
        undoing = _roll_back(draft, roll_out, why)
        if not to_replace(draft.consumers.now, undoing):
            _end(draft, undoing)
    else:
        # What was good before is tried until none of the failed version is left.
        draft.change(roll_out=replace(roll_out, replacing=None, replacement=None))


def _target_without(
    draft: StepDraft, replacement: ConsumerId | None
) -> dict[TopicPartition, ConsumerId]:
    """All partitions stay but those of the leaving one, which the replacement or others get."""
    group = group_load(draft)
    others = {c: group.load_by_consumer.get(c, 0.0) for c in available(draft)}
    target: dict[TopicPartition, ConsumerId] = {}
    for partition in sorted(draft.state.write_speeds):
        owner = owner_of(draft, partition)
        if owner is None:
            owner = replacement or min(others, key=lambda c: (others[c], c))
            others[owner] = others.get(owner, 0.0) + group.load_bytes_per_s[partition]
        target[partition] = owner
    return target
