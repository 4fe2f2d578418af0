"""Times of the day in which the settings allow no change: they count like an operator's pause."""

from penstock.controller.core.inputs import Tick
from penstock.controller.core.state import PauseRecord
from penstock.controller.core.step_draft import StepDraft
from penstock.messages import Direction
from penstock.packing.daily_ranges import DailyRange, minute_of_week

_MINUTE_MS = 60_000


def note_excluded(draft: StepDraft, tick: Tick) -> None:
    """Remember which of these times it is."""
    settings = draft.state.settings
    minute = minute_of_week(tick.unix_ms, tick.utc_offset_s)
    began_ms = tick.unix_ms // _MINUTE_MS * _MINUTE_MS
    ranges = [
        *((Direction.DOWN, "packing.no_scale_down", one) for one in settings.no_scale_down),
        *((Direction.BOTH, "packing.freeze", one) for one in settings.freeze),
    ]
    now = tuple(
        _pause(direction, option, one, began_ms + left * _MINUTE_MS)
        for direction, option, one in ranges
        if (left := one.minutes_left(minute))
    )
    if now != draft.state.excluded:
        draft.change(excluded=now)


def _pause(direction: Direction, option: str, one: DailyRange, until_unix_ms: int) -> PauseRecord:
    return PauseRecord(direction, until_unix_ms, f"{option}: {one.text}", option)
