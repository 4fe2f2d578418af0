"""A consumer without a valid id ends with an error."""

import pytest

from penstock.cli.consumer import _id_from_environment
from penstock.errors import SettingsError


def test_the_id_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The id comes from PENSTOCK_CONSUMER_ID, as the downward API sets it."""
    monkeypatch.setenv("PENSTOCK_CONSUMER_ID", "17")
    assert _id_from_environment() == 17


def test_a_missing_identity_is_an_error_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 3, with the label that the id should come from."""
    monkeypatch.delenv("PENSTOCK_CONSUMER_ID", raising=False)
    with pytest.raises(SettingsError, match=r"neither --id nor PENSTOCK_CONSUMER_ID") as raised:
        _id_from_environment()
    assert raised.value.exit_code == 3
    assert "penstock.io/consumer" in raised.value.remedy


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "one", "1.0", " 1", "\u0663", "100001", "9" * 5000]
)
def test_a_wrong_identity_is_an_error_of_the_settings(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 (the controller's partition) and text that is not a number are refused."""
    monkeypatch.setenv("PENSTOCK_CONSUMER_ID", text)
    with pytest.raises(SettingsError, match="not a consumer id") as raised:
        _id_from_environment()
    assert raised.value.exit_code == 3
