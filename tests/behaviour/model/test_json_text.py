"""JSON of others: read, or a ValueError."""

import pytest

from penstock.model.json_text import read_json


def test_what_json_has_is_read() -> None:
    """Also the largest numbers that a 64-bit program writes."""
    found = read_json(b'{"a": [1, -9223372036854775808, 2.5e300, null, "\\u00e9"]}')
    assert found == {"a": [1, -(2**63), 2.5e300, None, "\u00e9"]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "-Infinity",
        "1e999",
        "1" + "0" * 30,
        b"\xff",
        "[" * 200_000,
        '{"a":' * 200_000,
    ],
)
def test_all_else_is_one_kind_of_error(text: str | bytes) -> None:
    """No RecursionError, and nothing on which arithmetic fails later."""
    with pytest.raises(ValueError):
        read_json(text)
