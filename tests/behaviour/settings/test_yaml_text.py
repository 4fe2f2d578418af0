"""YAML within bounds."""

import pytest

from penstock.errors import SettingsError
from penstock.settings.yaml_text import DEPTH_MAX, read_yaml

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))


def test_aliases_may_be_used() -> None:
    """An anchor and two aliases are a way to write less."""
    assert read_yaml("a: &x {b: 1}\nc: *x\nd: [*x]", "file")["d"] == [{"b": 1}]


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        "a: &x [*x]",
        "&x {a: *x}",
        "a:\n" + "".join(f"{' ' * n}a:\n" for n in range(1, DEPTH_MAX + 2)),
        "[" * 5_000,
        "2001-99-99",
        "!!bool x",
        "!!int x",
        "!!python/object/apply:os.getpid []",
        "a: b: c",
    ],
)
def test_what_is_not_sound_is_one_error_that_names_the_file(text: str) -> None:
    """Bombs, circles, depth, dates that are none, tags that lie, and what is no YAML at all."""
    with pytest.raises(SettingsError, match=r"^penstock\.yaml"):
        read_yaml(text, "penstock.yaml")
