"""Finds options in documents that do not exist: `section.option` in backticks.

Names of the Helm chart's values look alike; they are known from values.yaml.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from documents.links import BACKTICKS, Broken, prose
from penstock.settings.sections import Settings
from penstock.settings.tree import known_options

VALUES = "deploy/helm/penstock/values.yaml"


def unknown_options(root: Path, document: Path) -> list[Broken]:
    known = known_names(root)
    shown = str(document.relative_to(root))
    return [
        Broken(shown, number, name)
        for number, line in prose(document.read_text(encoding="utf-8"))
        for name in _option_names(line)
        if name not in known
    ]


def known_names(root: Path) -> frozenset[str]:
    """Every option, every file that holds a secret, and every value of the chart."""
    options = {option.name for option in known_options().values()}
    files = {f"{option.name}_file" for option in known_options().values() if option.is_secret}
    values = yaml.safe_load((root / VALUES).read_text(encoding="utf-8"))
    return frozenset(options | files | set(_paths(values)))


def _option_names(line: str) -> list[str]:
    """`--set packing.knob=1` and `settings.lake.root` name options as `packing.knob` does."""
    sections = "|".join(Settings.model_fields)
    pattern = rf"(?:^|--set |settings\.)((?:{sections})\.[a-z_]+)(?=$|[=: ])"
    return [name for text in BACKTICKS.findall(line) for name in re.findall(pattern, text)]


def _paths(values: Any, path: str = "") -> list[str]:
    if not isinstance(values, dict):
        return [path]
    below = [_paths(one, f"{path}.{name}" if path else name) for name, one in values.items()]
    return [path, *(name for names in below for name in names)]
