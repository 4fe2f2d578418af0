"""`penstock study consumer` takes no option that would do nothing."""

import pytest

from kit.program import invoked
from penstock.errors import UsageError


@pytest.mark.parametrize(
    "given",
    [
        ("--quick",),
        ("--runs", "1"),
        ("--size", "60MB"),
        ("--only", "compression"),
        ("--directory", "out"),
    ],
)
def test_a_topic_of_ones_own_has_no_cases(given: tuple[str, ...]) -> None:
    """Also where the value is the default."""
    done = invoked("study", "consumer", "--topic", "orders", *given)
    assert isinstance(done.exception, UsageError)
    assert done.exception.exit_code == 2
    assert str(done.exception) == f"{given[0]} has no effect with --topic."


@pytest.mark.parametrize(
    "given",
    [
        ("--transformation", "shop:decode"),
        ("--for", "60s"),
        ("--set", "kafka.answer_timeout=5s"),
        ("-f", "penstock.yaml"),
        ("--bootstrap-server", "127.0.0.1:9"),
    ],
)
def test_the_cases_have_a_broker_and_settings_of_their_own(given: tuple[str, ...]) -> None:
    """So those options would be ignored."""
    done = invoked("study", "consumer", *given)
    assert isinstance(done.exception, UsageError)
    name = "--settings" if given[0] == "-f" else given[0]
    assert str(done.exception) == f"{name} needs --topic."
