"""Finds commands in documents, errors and help texts that do not exist, or have no such option.

A command is text in backticks, or a line of a shell block that no test runs, which begins with
`penstock`, `make` or `python`. Also checked is what follows `--` in a `kubectl exec`. Values are
checked where they are not placeholders, such as `N`, `{...}` or the `{name}` of an f-string.
"""

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer

from documents.examples import examples_in
from documents.links import Broken
from penstock.cli.main import LazyCommand, app

CODE = re.compile(r"`([^`]+)`")
BLOCK = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
PLACEHOLDER = re.compile(r"[A-Z]|n|.*\.\.\..*|<.*>|\{.*\}")
TARGET = re.compile(r"^([a-z0-9-]+):(?!=)", re.MULTILINE)
PROGRAMS = ("penstock", "make", "python")
HELP = {"-h", "--help"}


def commands_in(root: Path, document: Path) -> list[tuple[int, str]]:
    """The commands of a document with their lines: in its prose, and in blocks that are not run."""
    text = document.read_text(encoding="utf-8")
    prose = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    found = [
        (prose.count("\n", 0, code.start()) + 1, " ".join(code[1].split()))
        for code in CODE.finditer(prose)
    ]
    for block in examples_in(root, document):
        if block.language == "sh" and block.mark.startswith("not run"):
            found += [(block.line, command) for command in block.commands]
    return sorted((line, one) for line, text in found for one in _ours(text))


def _ours(text: str) -> Iterator[str]:
    for part in re.split(r" (?:&&|\|\||\||;|>) ", text):
        command = part.partition(" -- ")[2] if part.startswith("kubectl") else part
        command = command.removeprefix(".venv/bin/")
        if command.split(" ")[0] in PROGRAMS and len(command.split(" ")) > 1:
            yield command


def unknown_commands(root: Path, document: Path) -> list[Broken]:
    shown = str(document.relative_to(root))
    return [
        Broken(shown, line, f"{command}: {problem}")
        for line, command in commands_in(root, document)
        for problem in problems_of(root, command)
    ]


def problems_of(root: Path, command: str) -> list[str]:
    """What is wrong with a command, if anything."""
    program, *rest = shlex.split(command, comments=True)
    if program == "make":
        return _problems_of_make(root, rest)
    return _problems_of_python(root, rest) if program == "python" else _problems_of_penstock(rest)


def _problems_of_make(root: Path, rest: list[str]) -> list[str]:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    targets = set(TARGET.findall(makefile))
    problems = []
    for word in rest:
        name, is_variable, _ = word.partition("=")
        if is_variable and f"$({name})" not in makefile:
            problems.append(f"no variable {name}")
        if not is_variable and name not in targets:
            problems.append(f"no target {name}")
    return problems


def _problems_of_python(root: Path, rest: list[str]) -> list[str]:
    if rest[0] != "-m":
        return [] if (root / rest[0]).is_file() else [f"no file {rest[0]}"]
    module, options = rest[1], [word for word in rest[2:] if word.startswith("-")]
    if PLACEHOLDER.fullmatch(module):
        return []
    if importlib.util.find_spec(module) is None:
        return [f"no module {module}"]
    known = _help_of(module) if options else ""
    return [f"no option {one}" for one in options if not re.search(rf"{one}\b", known)]


@cache
def _help_of(module: str) -> str:
    asked = [sys.executable, "-m", module, "--help"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout


def _problems_of_penstock(rest: list[str]) -> list[str]:
    command: Any = typer.main.get_command(app)
    words = list(rest)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        name = words.pop(0)
        if PLACEHOLDER.fullmatch(name):
            return []
        if name not in command.commands:
            return [f"no command {name}"]
        command = command.commands[name]
        if isinstance(command, LazyCommand):
            command = command.imported()
    places = [one for one in command.params if one.param_type_name == "argument"]
    problems: list[str] = []
    while words:
        word = words.pop(0)
        if word.startswith("-"):
            problems += _problems_of_option(command, word, words)
        elif not places:
            problems.append(f"no argument {word}")
        else:
            problems += _wrong_value(places[0], word)
            if places[0].nargs != -1:
                places.pop(0)
    return problems


def _problems_of_option(command: Any, word: str, rest: list[str]) -> list[str]:
    """Of one option; takes its value from `rest` if it stands there."""
    options = {name: one for one in command.params for name in (*one.opts, *one.secondary_opts)}
    name, is_joined, value = word.partition("=")
    if name in HELP:
        return []
    if name not in options:
        return [f"no option {name}"]
    if getattr(options[name], "is_flag", False):
        return []
    if not is_joined and not rest:
        return [f"{name} needs a value"]
    return _wrong_value(options[name], value if is_joined else rest.pop(0))


def _wrong_value(option: Any, value: str) -> list[str]:
    if PLACEHOLDER.fullmatch(value):
        return []
    try:
        option.type.convert(value, option, None)
    except Exception as error:  # noqa: BLE001 -- typer has no public class for it
        return [str(error)]
    return []
