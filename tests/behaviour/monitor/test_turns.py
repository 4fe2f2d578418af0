"""Of several monitors the oldest that lives publishes."""

from penstock.monitor.core.turns import SILENT_PERIODS, Turns


def test_alone_it_publishes() -> None:
    """What it hears of itself, or of a younger one, does not stop it."""
    turns = Turns(incarnation=5, period_s=2.0)
    assert turns.is_mine(0.0)
    turns.heard(5, 1.0)
    turns.heard(9, 1.0)
    assert turns.is_mine(1.0)
    assert turns.other is None


def test_it_steps_aside_while_an_older_one_is_heard() -> None:
    """And publishes again some periods after the last it heard of it."""
    turns = Turns(incarnation=5, period_s=2.0)
    turns.heard(3, 10.0)
    assert not turns.is_mine(10.0)
    turns.heard(4, 12.0)  # younger than the one it waits for
    assert turns.other == 3
    turns.heard(3, 14.0)
    assert not turns.is_mine(14.0 + SILENT_PERIODS * 2.0 - 0.1)
    assert turns.is_mine(14.0 + SILENT_PERIODS * 2.0)
    turns.heard(4, 30.0)
    assert not turns.is_mine(30.0)
    turns.heard(2, 31.0)
    assert turns.other == 2
