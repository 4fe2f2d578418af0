"""The controller's heartbeats through Kafka, and what consumers report that they wait for.

The controller's heartbeat passes through the consumers' log like every report. The next one is sent
only after the last one came back, so a heartbeat that returned proves that every earlier message
was read. While none comes back (the broker is away, the controller stood still, its reader is
behind) heartbeat time stops, and no consumer is given up.
"""

from penstock.controller.core.effects import SendHeartbeat
from penstock.controller.core.inputs import HeartbeatReturned
from penstock.controller.core.state import ConsumerRecord, LakeSeen
from penstock.controller.core.step_draft import StepDraft
from penstock.messages import ConsumerReport, ControllerHeartbeat, WaitsFor
from penstock.model.changed import changed

# A heartbeat that is away for this many periods is lost: another one takes its place.
# No setting: a late heartbeat only delays decisions, in proportion to `heartbeat_period`.
LOST_AFTER_PERIODS = 5
# Of so many heartbeats it is known when they were sent.
SENT_REMEMBERED = 10


def send_heartbeat(draft: StepDraft) -> None:
    """Send a heartbeat if due."""
    known = draft.state.heartbeats
    waits_ms = draft.state.settings.heartbeat_period_ms
    if known.is_awaited:
        waits_ms *= LOST_AFTER_PERIODS
    if known.last_sent_ms and draft.now_ms - known.last_sent_ms[0] < waits_ms:
        return
    number = known.heartbeats_sent + 1
    sent_ms = (draft.now_ms, *known.last_sent_ms)[:SENT_REMEMBERED]
    draft.change(heartbeats=changed(known, heartbeats_sent=number, last_sent_ms=sent_ms))
    epoch = draft.state.controller_epoch
    draft.do(SendHeartbeat(ControllerHeartbeat(controller_epoch=epoch, heartbeat_number=number)))


def count_returned(draft: StepDraft, given: HeartbeatReturned) -> bool:
    """Whether heartbeat time has passed: a heartbeat came back, and not one of many together.

    Where a heartbeat needs longer than the next one waits, each comes back after its successor was
    sent. It still proves that everything before it was read.
    """
    known = draft.state.heartbeats
    is_ours = given.controller_epoch == draft.state.controller_epoch
    if not is_ours or not known.returned < given.number <= known.heartbeats_sent:
        draft.count("other_heartbeat")
        return False
    period_ms = draft.state.settings.heartbeat_period_ms
    since_ms = draft.now_ms - known.passed_ms
    sent_ms = known.sent_ms(given.number)
    heard_until_ms = known.heard_until_ms if sent_ms is None else sent_ms
    if given.number < known.heartbeats_sent and since_ms < period_ms:
        draft.change(
            heartbeats=changed(known, returned=given.number, heard_until_ms=heard_until_ms)
        )
        return False
    heartbeat_time_ms = known.heartbeat_time_ms + period_ms
    draft.change(
        heartbeats=changed(
            known,
            heartbeat_time_ms=heartbeat_time_ms,
            returned=given.number,
            passed_ms=draft.now_ms,
            heard_until_ms=heard_until_ms,
        )
    )
    if known.returned and since_ms > LOST_AFTER_PERIODS * period_ms:
        _give_everybody_time(draft)
    return True


def _give_everybody_time(draft: StepDraft) -> None:
    """After a while without heartbeats: what was away may have been away for others a bit longer.

    How long a consumer was quiet before does not count together with its way back.
    """
    now_ms = draft.heartbeat_time_ms
    for consumer, record in draft.consumers.now.items():
        draft.consumers.put(consumer, changed(record, heard_heartbeat_time_ms=now_ms))


def note_carried_records(draft: StepDraft) -> None:
    """A consumer has carried something: the lake is there. A gap of `acknowledge` ends a period."""
    now_ms, seen = draft.heartbeat_time_ms, draft.state.lake_seen
    is_gap = now_ms - seen.until_heartbeat_time_ms >= draft.state.settings.acknowledge_ms
    since_ms = now_ms if is_gap else seen.since_heartbeat_time_ms
    draft.change(lake_seen=LakeSeen(since_ms, now_ms))


def explained(draft: StepDraft, record: ConsumerRecord, message: ConsumerReport) -> ConsumerRecord:
    """The record with what the report says that its consumer waits for or works on."""
    parts = []
    if message.waits_for is not None:
        parts.append(f"waits for {_named(message.waits_for.what)}")
    if message.works_on is not None:
        parts.append(f"works on a {message.works_on.what.value}")
    explained_ms = draft.heartbeat_time_ms if parts else record.explained_heartbeat_time_ms
    return changed(record, explained_heartbeat_time_ms=explained_ms, occupation=" and ".join(parts))


def _named(what: WaitsFor) -> str:
    return "the lake" if what is WaitsFor.LAKE else what.value.capitalize()
