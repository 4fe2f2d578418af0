"""What the controller hears: its own heartbeats, and what consumers say of themselves.

The controller's heartbeat passes through partition 0 like every report. The next one is sent only
after the last one came back, so that each that came back has heard everything written before it.
While none comes back (the broker is away, the controller stood still, its reader is behind)
listening time stands still, and nobody is judged.
"""

from dataclasses import replace

from penstock.controller.core.effects import SendHeartbeat
from penstock.controller.core.inputs import HeartbeatReturned
from penstock.controller.core.state import ConsumerRecord, Hearing
from penstock.controller.core.step_draft import StepDraft
from penstock.messages import ConsumerReport, ControllerHeartbeat, WaitsFor

# A heartbeat that is away for this many periods is lost: another one takes its place.
LOST_AFTER_PERIODS = 5


def send_heartbeat(draft: StepDraft) -> None:
    """If one is due."""
    hearing = draft.state.hearing
    waits_ms = draft.state.settings.heartbeat_period_ms
    if hearing.is_awaited:
        waits_ms *= LOST_AFTER_PERIODS
    if hearing.heartbeats_sent and draft.now_ms - hearing.sent_ms < waits_ms:
        return
    number = hearing.heartbeats_sent + 1
    draft.change(hearing=Hearing(hearing.listened_ms, number, draft.now_ms, is_awaited=True))
    epoch = draft.state.controller_epoch
    draft.do(SendHeartbeat(ControllerHeartbeat(controller_epoch=epoch, heartbeat_number=number)))


def hear(draft: StepDraft, given: HeartbeatReturned) -> bool:
    """Whether the heartbeat that is awaited came back: then listening time has passed."""
    hearing = draft.state.hearing
    is_ours = given.controller_epoch == draft.state.controller_epoch
    if not is_ours or not hearing.is_awaited or given.number != hearing.heartbeats_sent:
        draft.count("other_heartbeat")
        return False
    listened_ms = hearing.listened_ms + draft.state.settings.heartbeat_period_ms
    draft.change(hearing=replace(hearing, listened_ms=listened_ms, is_awaited=False))
    return True


def explained(draft: StepDraft, record: ConsumerRecord, message: ConsumerReport) -> ConsumerRecord:
    """The record with what the report says that its consumer waits for or works on."""
    parts = []
    if message.waits_for is not None:
        parts.append(f"waits for {_named(message.waits_for.what)}")
    if message.works_on is not None:
        parts.append(f"works on a {message.works_on.what.value}")
    explained_ms = draft.listened_ms if parts else record.explained_listened_ms
    return replace(record, explained_listened_ms=explained_ms, occupation=" and ".join(parts))


def _named(what: WaitsFor) -> str:
    return "the lake" if what is WaitsFor.LAKE else what.value.capitalize()
