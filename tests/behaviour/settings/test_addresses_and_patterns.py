"""Wrong addresses and patterns are refused with what to write instead."""

import pytest

from penstock.errors import SettingsError
from penstock.settings import load_settings


def refusal(option: str, value: object) -> str:
    with pytest.raises(SettingsError) as raised:
        load_settings(flags={option: value}, environment={})
    text = str(raised.value)
    assert text.startswith(f"flag: {option}: ")
    return text


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("broker", "'broker' has no port; write broker:9092"),
        ("a:1,broker", "'broker' has no port; write broker:9092"),
        ("[::1]", "'[::1]' has no port; write [::1]:9092"),
        ("kafka://broker:9092", "begins with kafka://; write broker:9092 alone."),
        ("SASL_SSL://broker:9093", "security.protocol in kafka.properties"),
        ("http://broker:9092/x", "write broker:9092 alone."),
        ("broker:9092/", "has a path; write broker:9092 alone"),
        ("a:9092, b:9092", "has a blank; write a:9092,b:9092"),
        (" a:9092 ", "has a blank; write a:9092"),
        ("a:9092,,b:9092", "has an empty entry; write a:9092,b:9092"),
        ("a:9092,", "has an empty entry; write a:9092"),
        (",", "has an empty entry; write host:port"),
        ("", "it is empty; write host:port, several with commas: broker-1:9092,broker-2:9092"),
        ("a:port", "ends with 'port', which is no port; write a number from 1 to 65535"),
        ("a:70000", "'70000', which is no port; write a number from 1 to 65535, such as a:9092"),
        ("a:0", "which is no port"),
        (":9092", "has no host; write host:9092"),
        (["a:1", "b:2"], "it is a list; write one text with commas: a:1,b:2"),
    ],
)
def test_an_address_is_refused_with_the_right_one(written: object, says: str) -> None:
    """A client would only say, after a while, that no broker answers."""
    assert says in refusal("kafka.bootstrap_servers", written)


@pytest.mark.parametrize("address", ["127.0.0.1:9092", "a:1,b.example:65535", "[::1]:9092"])
def test_addresses_are_taken_as_they_are(address: str) -> None:
    """Names, numbers and several of them."""
    loaded = load_settings(flags={"kafka.bootstrap_servers": address}, environment={})
    assert loaded.settings.kafka.bootstrap_servers == address


@pytest.mark.parametrize("option", ["monitor.include", "monitor.exclude"])
@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("orders.*", "'orders.*' is one text; write a list: [\"orders.*\"]"),
        ('["*"]', "Any characters are .* there: write .*."),
        ('["*-orders"]', "Any characters are .* there: write .*-orders."),
        ('["orders("]', "Write \\ before a character that is meant as itself, such as \\("),
        ('[""]', "'' is the name of nothing; write .* for all names, or take it out"),
    ],
)
def test_a_pattern_is_refused_with_the_right_one(option: str, written: str, says: str) -> None:
    """Newcomers write one text, or wildcards of file names."""
    assert says in refusal(option, written)


def test_no_topic_at_all_is_refused() -> None:
    """A group that reads nothing is not what somebody wants."""
    assert "it is empty, so no topic would count" in refusal("monitor.include", "[]")
    load_settings(flags={"monitor.exclude": "[]"}, environment={})


def test_a_list_that_is_no_yaml_is_shown_as_one() -> None:
    """`*` alone is a reference in YAML."""
    with pytest.raises(SettingsError) as raised:
        load_settings(environment={"PENSTOCK_MONITOR__INCLUDE": "*"})
    assert raised.value.remedy.endswith('monitor.include=\'["orders.*", "payments"]\'.')
