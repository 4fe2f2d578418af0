"""Whether this controller still leads: only the broker can say so.

Anybody who may write to the consumer topic can name any controller epoch, so a message that names a
higher one than ours ends nothing. It is refused, and the broker is asked: if a newer controller
has taken the transactional id over, the broker fences us, and only then we step down. Otherwise the
message was forged, or its sender was deceived, and the history says so.

An epoch is one more than the offset of its claim in partition 0 of the controller topic. So an
epoch above the end of that log has no claim: no question is needed.
"""

from penstock.controller.core.decisions import Code
from penstock.controller.core.effects import AskWhoLeads
from penstock.controller.core.inputs import (
    ConsumerMessageRead,
    HeartbeatReturned,
    LeadershipConfirmed,
    MessageRefused,
)
from penstock.controller.core.state import State
from penstock.controller.core.step_draft import StepDraft

# No setting: a flood of forged messages must not become one of transactions.
ASK_AGAIN_MS = 1_000


NamesAnEpoch = ConsumerMessageRead | HeartbeatReturned


def names_a_higher_epoch(state: State, given: NamesAnEpoch) -> bool:
    """Whether the input was written by, or obeys, a newer controller than this one."""
    return _named_epoch(given) > state.controller_epoch


def doubt(draft: StepDraft, given: NamesAnEpoch) -> None:
    """Refuse the message; ask the broker who leads, unless the epoch is impossible."""
    draft.count("higher_epoch")
    if isinstance(given, ConsumerMessageRead):
        who = f"a message of consumer {given.message.sender}"
    else:
        who = "a heartbeat"
        draft.count("other_heartbeat")
    named = f"{who} names controller epoch {_named_epoch(given)}"
    if given.offset is not None and _named_epoch(given) > given.offset:
        draft.decide(Code.MESSAGE_REFUSED, f"{named}, which no claim in the log can have: refused")
        return
    draft.change(doubted=f"{named}, above our {draft.state.controller_epoch}")
    asked_ms = draft.state.asked_who_leads_ms
    if asked_ms is None or draft.now_ms - asked_ms >= ASK_AGAIN_MS:
        draft.change(asked_who_leads_ms=draft.now_ms)
        draft.do(AskWhoLeads())


def confirmed(draft: StepDraft, _: LeadershipConfirmed) -> None:
    """We lead, so the epoch that was named is nobody's."""
    if draft.state.doubted:
        draft.decide(
            Code.MESSAGE_REFUSED,
            f"{draft.state.doubted}, and the broker says that we lead: refused",
        )
        draft.change(doubted="")


def refused(draft: StepDraft, given: MessageRefused) -> None:
    """The history tells it once, with a count."""
    draft.count("message_refused")
    draft.decide(Code.MESSAGE_REFUSED, given.explanation)


def _named_epoch(given: NamesAnEpoch) -> int:
    if isinstance(given, ConsumerMessageRead):
        return given.message.controller_epoch
    return given.controller_epoch
