"""Which incarnations of a consumer there can be: none is far ahead of the clock.

An incarnation is the wall clock's time in milliseconds when the consumer started, or one more than
its former one where that is higher. Anybody who may write to the consumer topic can name a higher
one, and what is lower is not heard any more. So one that is far ahead of this clock is refused: the
number of that consumer would be of no use to anybody for as long.

A clock that was wrong and was set back leaves consumers that count on from a high number. Those
are heard: they are hardly above what is known of them.
"""

from penstock.controller.core.decisions import Code
from penstock.controller.core.inputs import ConsumerMessageRead
from penstock.controller.core.state import State
from penstock.controller.core.step_draft import StepDraft

# No settings: clocks of machines that work together differ by less, also in different time zones,
# and no consumer starts so often without being heard.
AHEAD_OF_THE_CLOCK_MAX_MS = 24 * 3600 * 1000
STARTS_UNHEARD_MAX = 1_000


def is_impossible(state: State, given: ConsumerMessageRead) -> bool:
    """Whether no consumer can have this incarnation now. Without a clock every one is possible."""
    message = given.message
    known = state.consumers.get(message.sender)
    floor = max(
        state.incarnation_floor.get(message.sender, 0), 0 if known is None else known.incarnation
    )
    return (
        given.unix_ms is not None
        and message.incarnation > given.unix_ms + AHEAD_OF_THE_CLOCK_MAX_MS
        and message.incarnation > floor + STARTS_UNHEARD_MAX
    )


def refuse(draft: StepDraft, given: ConsumerMessageRead) -> None:
    """Nothing in it counts. The history tells it once, with a count."""
    draft.count("impossible_incarnation")
    draft.decide(
        Code.MESSAGE_REFUSED,
        f"a message of consumer {given.message.sender} names an incarnation that is more than "
        "a day ahead of the controller's clock: refused",
    )
