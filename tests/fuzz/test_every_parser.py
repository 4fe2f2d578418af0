"""Whatever the bytes are, a parser returns a value or refuses them. `make fuzz` tries more."""

import json
import re
from pathlib import Path

import pytest

from kit.fuzz import fuzzing
from kit.fuzz.every_parser import PARSERS
from kit.fuzz.fuzzing import CORPUS, corpus_of, fuzz, replay
from kit.fuzz.parser import BrokenLawError, Form, Parser, require_law

EXAMPLES = 40
SOURCES = Path(__file__).parents[2] / "src" / "penstock"
# What takes foreign bytes apart.
READS = re.compile(
    r"json\.loads?\(|read_json\(|safe_load\(|read_yaml\(|struct\.Struct\(|ParquetFile\(|"
    r"csv\.reader\(|BaseHTTPRequestHandler\)|scope\[\"headers\"\]|\.query_params|b64decode\("
)
# No parser of foreign bytes, and why.
EXCUSED = {
    "model/json_text.py": "all who read JSON use it",
    "cli/try_topic.py": "shows records and does not read them",
    "kafka_io/listener_greeting.py": "ten bytes of an answer: any of them are a number",
    "pipeline/compaction.py": "files of the table's own version, as deltalake names them",
    "pipeline/keep_tables.py": "a child of ours, asked by its parent",
    "pipeline/make_checkpoint.py": "a child of ours, asked by its parent",
    "pipeline/read_range.py": "the columns that the driver of the same process wrote",
    "pipeline/table_keeper.py": "whole lines of a child of ours",
    "pipeline/table_schema.py": "Spark's description of rows that it has just made",
    "controller/core/saved_state.py": "the request inside a state that was read already",
    "verification/lake_records.py": "Parquet files of the table: tests/real_spark has damaged ones",
}
IDS = [parser.name for parser in PARSERS]


@pytest.mark.parametrize("parser", PARSERS, ids=IDS)
def test_examples_are_read(parser: Parser) -> None:
    """What is mutated is right at first: no parser refuses its first example."""
    parser.parse(parser.examples[0])


@pytest.mark.parametrize("parser", PARSERS, ids=IDS)
def test_what_ever_crashed_holds_now(parser: Parser) -> None:
    """The corpus of the parser, first of all."""
    replay(parser)


@pytest.mark.parametrize("parser", PARSERS, ids=IDS)
def test_made_input_is_read_or_refused(parser: Parser) -> None:
    """The short form of `make fuzz`, with the same input at every run."""
    fuzz(parser, EXAMPLES)


def test_every_folder_of_the_corpus_has_its_parser() -> None:
    """A renamed parser takes its crashes along."""
    assert {folder.name for folder in CORPUS.iterdir()} <= set(IDS)


def test_who_reads_foreign_bytes_is_fuzzed() -> None:
    """Every module that takes bytes apart is named by a parser, or excused with a reason."""
    named = {module for parser in PARSERS for module in parser.modules}
    for module in named | EXCUSED.keys():
        assert (SOURCES / module).is_file(), module
    for path in sorted(SOURCES.rglob("*.py")):
        module = str(path.relative_to(SOURCES))
        if READS.search(path.read_text(encoding="utf-8")) and not module.startswith("laboratory/"):
            assert module in named | EXCUSED.keys(), f"{module}: add it to kit/fuzz, or excuse it"


def test_a_crash_is_found_made_small_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parser that takes any number for a count is caught, and its input replayed first."""
    monkeypatch.setattr(fuzzing, "CORPUS", tmp_path)

    def parse(data: bytes) -> int:
        found = json.loads(data)
        return int(found["count"]) if isinstance(found, dict) and "count" in found else 0

    careless = Parser(
        "careless",
        parse,
        (b'{"count": 5, "more": [1, 2, 3]}',),
        Form.JSON_LINES,
        (),
        (ValueError, TypeError, RecursionError),
    )
    with pytest.raises(BrokenLawError, match="OverflowError"):
        fuzz(careless, 2_000)
    [kept] = corpus_of(careless)
    assert b'"count"' in kept.read_bytes()
    assert len(kept.read_bytes()) < len(careless.examples[0]) + 5
    with pytest.raises(BrokenLawError, match="OverflowError"):
        replay(careless)


def test_a_slow_parser_breaks_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is bounded, too."""
    monkeypatch.setattr("kit.fuzz.parser.PARSE_S_MAX", 0.01)
    slow = Parser("slow", lambda _: sum(range(10**7)), (b"x",), Form.BYTES, ())
    with pytest.raises(BrokenLawError, match="processor time"):
        require_law(slow, b"x")
