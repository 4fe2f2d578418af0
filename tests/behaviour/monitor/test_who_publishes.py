"""Of several monitors the oldest that lives publishes."""

from penstock.monitor.core.who_publishes import SILENT_PERIODS, WhoPublishes


def test_alone_it_publishes() -> None:
    """What it hears of itself, or of a younger one, does not stop it."""
    publishing = WhoPublishes(incarnation=5, period_s=2.0)
    assert publishing.is_mine(0.0)
    publishing.heard(5, 1.0)
    publishing.heard(9, 1.0)
    assert publishing.is_mine(1.0)
    assert publishing.other is None


def test_it_steps_aside_while_an_older_one_is_heard() -> None:
    """And publishes again some periods after the last it heard of it."""
    publishing = WhoPublishes(incarnation=5, period_s=2.0)
    publishing.heard(3, 10.0)
    assert not publishing.is_mine(10.0)
    publishing.heard(4, 12.0)  # younger than the one it waits for
    assert publishing.other == 3
    publishing.heard(3, 14.0)
    assert not publishing.is_mine(14.0 + SILENT_PERIODS * 2.0 - 0.1)
    assert publishing.is_mine(14.0 + SILENT_PERIODS * 2.0)
    publishing.heard(4, 30.0)
    assert not publishing.is_mine(30.0)
    publishing.heard(2, 31.0)
    assert publishing.other == 2
