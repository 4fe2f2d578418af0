"""The options from which the documentation is generated."""

from pathlib import Path

import yaml

from penstock.settings import load_settings
from penstock.settings.reference import reference_yaml
from penstock.settings.tree import known_options


def test_every_option_has_a_sentence_and_a_type() -> None:
    """Every option has a type and a sentence that ends in a full stop."""
    for option in known_options().values():
        assert option.sentence.endswith("."), option.name
        assert option.kind, option.name


def test_the_reference_uncommented_is_the_default(tmp_path: Path) -> None:
    """The uncommented reference file loads as the defaults."""
    lines = []
    for line in reference_yaml().splitlines():
        name, colon, value = line.strip().removeprefix("# ").partition(": ")
        is_option = line.startswith("  # ") and colon and name.replace("_", "").isalnum()
        if is_option and value != "/path/to/file":
            lines.append("  " + line.strip().removeprefix("# "))
        elif line and not line.startswith(("#", " ")):
            lines.append(line)
    file = tmp_path / "penstock.yaml"
    file.write_text("\n".join(lines), encoding="utf-8")
    assert yaml.safe_load(file.read_text(encoding="utf-8"))["topics"]["prefix"]
    loaded = load_settings(file, environment={})
    assert loaded.settings == load_settings(environment={}).settings
    values = [one for one in known_options().values() if one.default is not None]
    assert len(loaded.origin) == len(values)
