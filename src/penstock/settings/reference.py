"""Generates the table of options for the documentation, and a commented settings file."""

from collections.abc import Iterator
from itertools import groupby

from penstock.settings.sections import Settings
from penstock.settings.tree import Option, known_options


def _by_section() -> Iterator[tuple[str, str, list[Option]]]:
    for name, options in groupby(known_options().values(), key=lambda option: option.path[0]):
        section = Settings.model_fields[name].annotation
        yield name, (section.__doc__ or "").strip() if section else "", list(options)


def options_markdown() -> str:
    """The text of docs/options.md."""
    lines = [
        "# Options",
        "",
        "Generated from the settings by `make docs`; do not edit.",
        "",
        "Flags win over the environment, the environment over the file. In the environment an",
        "option is `PENSTOCK_` and its path in capitals with `__` between the parts:",
        "`kafka.answer_timeout` is `PENSTOCK_KAFKA__ANSWER_TIMEOUT`. On the command line it is",
        "`--set kafka.answer_timeout=5s`. A secret comes from the environment, or from a file",
        "named by the option with `_file` behind it.",
    ]
    for name, story, options in _by_section():
        lines += ["", f"## {name}", "", story, "", "| option | type | default | what it does |"]
        lines += ["| --- | --- | --- | --- |"]
        for option in options:
            default = f"`{option.default_text}`" if option.default_text else "none"
            lines.append(f"| `{option.name}` | {option.kind} | {default} | {option.sentence} |")
    return "\n".join(lines) + "\n"


def reference_yaml() -> str:
    """A settings file with every option at its default, commented out, each with its sentence."""
    lines = ["# Penstock settings: every option with its default. Uncomment what you change."]
    for name, story, options in _by_section():
        lines += ["", f"# {story}", f"{name}:"]
        for option in options:
            lines.append(f"  # {option.sentence} ({option.kind.replace('`', '')})")
            if option.is_secret:
                lines.append(f"  # {option.path[-1]}_file: /path/to/file")
            else:
                shown = '""' if option.default == "" else option.default_text
                lines.append(f"  # {option.path[-1]}: {shown}".rstrip())
    return "\n".join(lines) + "\n"
