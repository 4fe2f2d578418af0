"""Runs a parser against its corpus, then against made input. A crash is made small and kept."""

import hashlib
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from kit.fuzz.mutations import inputs_of
from kit.fuzz.parser import BrokenLawError, Parser, require_law

# How long a crash is made smaller.
SMALLER_S_MAX = 20.0
CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"


def corpus_of(parser: Parser) -> list[Path]:
    """Whatever ever crashed it."""
    return sorted((CORPUS / parser.name).glob("*"))


def replay(parser: Parser) -> None:
    for file in corpus_of(parser):
        require_law(parser, file.read_bytes())


def keep(parser: Parser, data: bytes) -> Path:
    file = CORPUS / parser.name / hashlib.sha256(data).hexdigest()[:12]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def fuzz(
    parser: Parser, examples: int, *, chosen_seed: int | None = None, running: Path | None = None
) -> None:
    """Raise BrokenLawError for input that breaks the law, after it was kept in the corpus.

    Without a seed the input is the same at every call. `running` is a file that has the input while
    native code reads it.
    """
    broken: list[bytes] = []
    first_s: list[float] = []

    def one(data: bytes) -> None:
        if first_s and time.monotonic() - first_s[0] > SMALLER_S_MAX and data not in broken:
            return  # what was found is small enough
        if running is not None and parser.is_native:
            running.write_bytes(data)
        try:
            require_law(parser, data)
        except BrokenLawError:
            broken.append(data)  # the last one is the smallest
            first_s.append(time.monotonic())
            raise

    attempt = given(inputs_of(parser))(one)
    attempt = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=chosen_seed is None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )(attempt)
    if chosen_seed is not None:
        attempt = seed(chosen_seed)(attempt)
    try:
        attempt()
    except BrokenLawError as error:
        raise BrokenLawError(f"{error} (kept as {keep(parser, broken[-1])})") from error
