"""What excuses a simulated process that the controller gives up."""

from penstock.laboratory.protocol_simulation.simulated_process import (
    FOR_EVER_MS,
    RECOVERS_MS,
    SimulatedProcess,
)
from penstock.laboratory.protocol_simulation.virtual_clock import VirtualClock


def excused_after(process: SimulatedProcess, ms: int) -> bool:
    process.clock.run_until(process.clock.now_ms + ms, lambda: None, 10)
    return process.is_harmed


def test_harm_excuses_until_it_is_recovered_from() -> None:
    """A message that was lost at the start of a run is no reason to be given up at its end."""
    process = SimulatedProcess(VirtualClock())
    assert not process.is_harmed
    process.harm()
    assert excused_after(process, RECOVERS_MS - 1)
    assert not excused_after(process, 1)


def test_a_pause_excuses_while_it_lasts_and_for_a_while_after_it() -> None:
    """However long it is."""
    process = SimulatedProcess(VirtualClock())
    process.pause()
    assert excused_after(process, 3 * RECOVERS_MS)
    process.resume()
    assert excused_after(process, RECOVERS_MS - 1)
    assert not excused_after(process, 1)
    process.resume()
    assert not process.is_harmed


def test_who_was_told_to_end_stays_excused() -> None:
    """It does not recover, and nothing that follows shortens that."""
    process = SimulatedProcess(VirtualClock())
    process.harm(FOR_EVER_MS)
    process.harm()
    assert excused_after(process, 100 * RECOVERS_MS)
