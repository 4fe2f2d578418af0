"""How soon a dead process is restarted."""

import pytest

from penstock.processes.restart_pace import RestartPaces, pause_s, restarts_after


def starts(runs_s: float, deaths: int) -> list[float]:
    """Seconds from each death to the next start, for a process that always runs this long."""
    waited, restarts = [], 0
    for _ in range(deaths):
        since_start_s = max(runs_s, pause_s(restarts))
        waited.append(since_start_s - runs_s)
        restarts = restarts_after(restarts, since_start_s)
    return waited


def test_a_process_that_keeps_dying_restarts_slower() -> None:
    """The pause doubles up to half a minute and stays there."""
    assert starts(0.0, 9) == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert starts(3.0, 9) == [0, 0, 0, 1, 5, 13, 27, 27, 27]


@pytest.mark.parametrize("runs_s", [11.0, 20.0, 3600.0])
def test_a_steady_process_restarts_at_once(runs_s: float) -> None:
    """A process that ran for some seconds restarts at once, however often it dies."""
    assert starts(runs_s, 30) == [0.0] * 30


def test_a_server_is_started_again_at_once_and_then_with_growing_pauses() -> None:
    """One that died while it started is not waited for as long as one that keeps dying."""
    paces, now_s, waited = RestartPaces(), 100.0, []
    assert paces.may_start("Spark", now_s)
    for _ in range(6):
        paces.tried("Spark", now_s)
        began_s = now_s
        while not paces.may_start("Spark", now_s):
            assert paces.may_start("broker", now_s)
            now_s += 0.25
        waited.append(now_s - began_s)
    assert waited == [1, 2, 4, 8, 16, 30]
    paces.tried("Spark", now_s + 3600)
    assert paces.may_start("Spark", now_s + 3601)
