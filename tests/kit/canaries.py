"""Secrets that are only planted to be looked for: wherever one is found, something leaks.

A new secret is one line in `CANARIES`: its environment variable, and a text that nothing else has.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# By the environment variable in which it enters.
CANARIES: Mapping[str, str] = {
    "PENSTOCK_KAFKA__SASL_PASSWORD": "canary-sasl-5f1c",
    "PENSTOCK_KAFKA__SSL_KEY_PASSWORD": "canary-key-password-77ab",
    "PENSTOCK_SPARK__TOKEN": "canary-spark-token-e6a0",
    "PENSTOCK_PAGE__TOKEN": "canary-page-token-4b19-of-enough-length",
    "AWS_ACCESS_KEY_ID": "canary-access-key-0d3e",
    "AWS_SECRET_ACCESS_KEY": "canary-secret-key-91c4",
    "AWS_SESSION_TOKEN": "canary-session-token-c2b8",
}
# Of requests, which anybody who may read the service topic can read: see docs/security.md.
REQUESTED = "canary-of-a-request-3bd7"


LOOK_EVERY_S = 0.1
# Kafka makes these ten megabytes long and empty.
_WITHOUT_TEXT = {".index", ".timeindex"}


def found_in(text: str | bytes, canaries: Iterable[str]) -> list[str]:
    raw = text.encode(errors="replace") if isinstance(text, str) else text
    return [one for one in canaries if one.encode() in raw]


def found_below(
    folder: Path, canaries: Iterable[str], *, without: Iterable[Path] = ()
) -> list[str]:
    """Where a canary lies in a file, by its name and the file's path."""
    wanted, skipped = list(canaries), set(without)
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.suffix in _WITHOUT_TEXT:
            continue
        if skipped & {path, *path.parents}:
            continue
        try:
            content = path.read_bytes()
        except OSError:
            continue  # it was removed, or is nobody's to read
        found += [f"{one} in {path.relative_to(folder)}" for one in found_in(content, wanted)]
    return found


def found_in_arguments(canaries: Iterable[str]) -> list[str]:
    """In the command line of any process of this machine."""
    wanted, found = list(canaries), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        found += [f"{one} in {arguments[:80]!r}" for one in found_in(arguments, wanted)]
    return found


@contextmanager
def watched_arguments(canaries: Iterable[str]) -> Iterator[set[str]]:
    """Looks again and again, from enter to exit: a process may live for a moment only."""
    wanted, found, is_over = list(canaries), set[str](), threading.Event()

    def watch() -> None:
        while not is_over.wait(LOOK_EVERY_S):
            found.update(found_in_arguments(wanted))

    watching = threading.Thread(target=watch, name="watches-arguments")
    watching.start()
    try:
        yield found
    finally:
        is_over.set()
        watching.join()
