"""`make fuzz`: every parser in turn, with new input, until the time is over.

Memory is limited, so that a parser that takes too much of it crashes here. A parser that hangs, or
native code that ends the process, leaves its input in `out/fuzz/running`.
"""

import argparse
import faulthandler
import resource
import secrets
import sys
import time
from pathlib import Path

from kit.fuzz.every_parser import PARSERS
from kit.fuzz.fuzzing import corpus_of, fuzz, replay
from kit.fuzz.parser import BrokenLawError, Parser

MEMORY_BYTES_MAX = 6 * 2**30
HANGS_AFTER_S = 300.0
EXAMPLES_A_ROUND = 300


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _broken(parser: Parser, chosen_seed: int, running: Path) -> str | None:
    faulthandler.dump_traceback_later(HANGS_AFTER_S, exit=True)
    try:
        fuzz(parser, EXAMPLES_A_ROUND, chosen_seed=chosen_seed, running=running)
    except BrokenLawError as error:
        return str(error)
    finally:
        faulthandler.cancel_dump_traceback_later()
    return None


def main() -> int:
    options = argparse.ArgumentParser(prog="make fuzz")
    options.add_argument("--minutes", type=float, default=10.0)
    options.add_argument("--only", default="", help="the name of one parser")
    chosen = options.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    running = Path("out/fuzz/running")
    running.parent.mkdir(parents=True, exist_ok=True)
    parsers = [one for one in PARSERS if chosen.only in {"", one.name}]
    ends_s = time.monotonic() + chosen.minutes * 60
    failures: dict[str, str] = {}
    tried = 0
    for parser in parsers:
        replay(parser)
    _say(f"{sum(len(corpus_of(one)) for one in parsers)} files of the corpus hold")
    while time.monotonic() < ends_s and parsers:
        for parser in list(parsers):
            if time.monotonic() >= ends_s:
                break
            broken = _broken(parser, secrets.randbits(32), running)
            tried += EXAMPLES_A_ROUND
            if broken is not None:
                failures[parser.name] = broken
                parsers.remove(parser)  # it would only be found again
                _say(broken)
    running.unlink(missing_ok=True)
    _say(f"about {tried} inputs, {len(failures)} of {len(PARSERS)} parsers broke")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
