"""How often the controller writes its status."""

import pytest

from penstock.cli.group_status import STALE_AFTER_S
from penstock.controller.process.status_file import STATUS_EVERY_S_MAX, status_pause_s


@pytest.mark.parametrize(
    ("took_s", "pause_s"), [(0.0, 1.0), (0.001, 1.0), (0.04, 2.0), (0.08, 4.0), (3.0, 4.0)]
)
def test_a_dear_status_is_written_less_often(took_s: float, pause_s: float) -> None:
    """It takes a fiftieth of a core at most, once a second at best and every four at worst."""
    assert status_pause_s(took_s) == pytest.approx(pause_s)


def test_the_rarest_status_is_not_taken_for_silence() -> None:
    """`penstock status` says that the controller is silent only after a status was left out."""
    assert STATUS_EVERY_S_MAX < STALE_AFTER_S
