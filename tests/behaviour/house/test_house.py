"""The rules of the house that no linter knows."""

import ast
import configparser
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LINES_MAX = 400
FUNCTION_LINES_MAX = 70
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "manager", "misc", "common"}
# Written so that this file does not name them.
REGISTRY_HOSTS = re.compile(
    r"repo1?\.m[a]ven\.|p[y]thonhosted\.|p[y]pi\.org|deb\.d[e]bian\.org|proxy\.g[o]lang\."
)


def tracked(*patterns: str) -> list[Path]:
    """Files of the commit to be, or of the folder where there is no git."""
    answer = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    names = answer.stdout.split("\n") if answer.returncode == 0 else []
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


SOURCES = tracked("src/*.py", "tests/*.py", "tools/*.py", "benchmarks/*.py")


def offenders(
    paths: Sequence[Path], broken: Callable[[str], Sequence[object]]
) -> dict[str, list[object]]:
    """What breaks a rule in each file, by the file's name; a rule over no file proves nothing."""
    assert paths
    found = {path: list(broken(path.read_text(encoding="utf-8"))) for path in paths}
    return {str(path.relative_to(ROOT)): some for path, some in found.items() if some}


def test_there_is_something_to_look_at() -> None:
    """A rule over an empty list proves nothing."""
    assert len(SOURCES) > 50


def storyless_or_long(text: str) -> list[str]:
    """What is missing at a module's head, and what in it is too long."""
    tree = ast.parse(text)
    found = []
    if text.strip() and not ast.get_docstring(tree):
        found.append("no story at its head")
    if text.count("\n") > LINES_MAX:
        found.append(f"more than {LINES_MAX} lines")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            body_begins = node.body[0].lineno  # a long list of options is no long function
            if node.end_lineno - body_begins >= FUNCTION_LINES_MAX:
                found.append(f"{node.name} is too long")
    return found


def test_a_module_opens_with_its_story_and_is_short() -> None:
    """Docstring first, at most 400 lines, functions that fit a screen, names of the domain."""
    assert offenders(SOURCES, storyless_or_long) == {}
    assert [path for path in SOURCES if path.stem in FORBIDDEN_NAMES] == []


def test_a_module_without_a_story_or_too_long_is_found() -> None:
    """By its head, its lines and its functions; an empty module needs no story."""
    assert storyless_or_long("") == []
    assert storyless_or_long('"""A story."""\n') == []
    long = "def act() -> None:\n" + "    pass\n" * (FUNCTION_LINES_MAX + 1)
    assert storyless_or_long(long) == ["no story at its head", "act is too long"]
    many = '"""A story."""\n' + "a = 1\n" * LINES_MAX
    assert storyless_or_long(many) == [f"more than {LINES_MAX} lines"]


def unexplained(text: str) -> list[int]:
    """The lines with a silenced rule or a sleep, and no reason.

    A reason follows ` -- ` or is a comment on the same line. For a sleep it may also be in the
    docstring of the function, which then says that it waits.
    """
    lines = text.splitlines()
    found = [
        number
        for number, line in enumerate(lines, start=1)
        if re.search(r"# noqa(?!: [A-Z0-9, ]+ -- \S)", line)
    ]
    waiting = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and "wait" in (ast.get_docstring(node) or "").lower()
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return found + [
        number
        for number, line in enumerate(lines, start=1)
        if "time.sleep" in line and "  # " not in line and number not in waiting
    ]


def test_silenced_rules_and_sleeps_have_a_reason() -> None:
    """A late import, any other silenced rule, and every sleep says why beside it."""
    assert offenders(tracked("src/*.py"), unexplained) == {}


def test_what_has_no_reason_is_found() -> None:
    """A bare `noqa`, one with a code alone, and a bare sleep are found."""
    late = "import os  # noqa: PLC0415"
    bare = f"import os  # noqa\n{late}\n{late} -- slow\ntime.sleep(1)\ntime.sleep(1)  # why\n"
    waits = 'def look() -> None:\n    """Wait a little."""\n    time.sleep(1)\n'
    assert unexplained(bare + waits) == [1, 2, 4]


def without_a_sentence(text: str) -> list[str]:
    return [
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]


def test_every_test_says_what_it_expects() -> None:
    """One sentence a test."""
    assert offenders(tracked("tests/*test_*.py"), without_a_sentence) == {}
    assert without_a_sentence("def test_a() -> None:\n    pass\n") == ["test_a"]


def test_no_registry_is_named() -> None:
    """Package clients know where packages live; our files do not say it."""
    for path in tracked():
        if path.suffix not in {".png", ".jar"}:
            found = REGISTRY_HOSTS.search(path.read_text(encoding="utf-8", errors="replace"))
            assert found is None, path


def test_the_readme_opens_with_the_two_commands() -> None:
    """A newcomer needs nothing else."""
    first_lines = (ROOT / "README.md").read_text(encoding="utf-8")[:4000]
    assert "make demo" in first_lines
    assert "make test" in first_lines
    assert "make test" in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_make_help_lists_every_target_with_a_sentence() -> None:
    """Also one with a digit in its name; what has no sentence is not listed."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^([^\s#:=]+):[^#=\n]*## (.+)$", makefile, re.MULTILINE))
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = dict(re.findall(r"^  make (\S+) +(.+)$", done.stdout, re.MULTILINE))
    assert {"s3-server", "test"} <= documented.keys()
    assert listed == documented


def test_locked_packages_have_hashes_and_no_addresses() -> None:
    """Exact versions with sums; tests/contracts/test_extras.py compares them with the extras."""
    for name in ("build", "runtime", "thin", "development"):
        text = (ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8")
        pinned = re.findall(r"^([a-z0-9-]+)==\S+", text, re.MULTILINE)
        assert pinned
        assert len(re.findall(r"^\S+==[^\n]+\\\n +--hash=sha256:", text, re.MULTILINE)) == len(
            pinned
        )
        assert "://" not in text


def _pure_modules() -> list[Path]:
    """Every module of the packages that the import contract calls pure."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter", encoding="utf-8")
    packages = contracts["importlinter:contract:pure"]["source_modules"].split()
    folders = [ROOT / "src" / package.replace(".", "/") for package in packages]
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def acts_without_an_import(text: str) -> list[str]:
    """Calls that read a clock, a file or a person, and need no import that a contract would see."""
    calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    named = [call.id for call in calls if isinstance(call, ast.Name)]
    asked = [call.attr for call in calls if isinstance(call, ast.Attribute)]
    builtins = {"open", "print", "input", "eval", "exec", "__import__"}
    return sorted((builtins & set(named)) | ({"now", "today", "utcnow"} & set(asked)))


def test_what_only_decides_does_not_act() -> None:
    """No file is opened, nothing is printed, and no date is asked for its present value."""
    assert offenders(_pure_modules(), acts_without_an_import) == {}


def test_both_contracts_of_purity_name_the_same_packages() -> None:
    """And so does the rule of complete coverage, in the Makefile."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter", encoding="utf-8")
    named = [
        set(contracts[f"importlinter:contract:{name}"]["source_modules"].split())
        for name in ("pure", "pure-of-ours")
    ]
    rule = (ROOT / "Makefile").read_text(encoding="utf-8").partition("PURE :=")[2]
    covered = rule.partition("EMPTY :=")[0].replace("\\", " ").partition("*.py,")[2]
    folders = {f"penstock.{name.replace('/', '.')}" for name in covered.strip(") \n").split()}
    assert named[0] == named[1] == folders


def test_an_act_in_what_decides_is_found() -> None:
    """The rule sees a file, a clock and a print."""
    text = "from datetime import datetime\nopen('a')\nprint(datetime.now())\n"
    assert acts_without_an_import(text) == ["now", "open", "print"]


@pytest.mark.parametrize(
    ("variable", "marks"),
    [
        ("WITH_PARTS", "broker|spark|browser"),
        ("WITH_KUBERNETES", "kubernetes"),
        ("SLOW", "slow"),
    ],
)
def test_make_runs_every_test_with_a_mark(variable: str, marks: str) -> None:
    """A marked test in a folder that the Makefile does not name would never run."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (folders,) = re.findall(rf"^{variable} := (.+)$", makefile, re.MULTILINE)
    marked = [
        path.relative_to(ROOT)
        for path in tracked("tests/*.py")
        if path.name.startswith("test_")
        and re.search(rf"pytest\.mark\.({marks})\b", path.read_text(encoding="utf-8"))
    ]
    named = {*folders.split(), "tests/real_group"}  # which has a make target of its own
    if variable == "SLOW":  # the short form of a study: it has a part's mark, too
        named |= {"tests/real_broker", "tests/real_spark"}
    assert marked
    assert [p for p in marked if not any(p.is_relative_to(folder) for folder in named)] == []
