"""Fetches a set of jars into the cache with the Ivy that PySpark ships; needs only Java.

The Ivy module names every file (no transitive resolution, no POM files). Ivy has the address of the
public repository built in; `PENSTOCK_JAR_REPOSITORY` names a mirror instead. Checksums are verified
before the set gets its final name.
"""

import fcntl
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from penstock.errors import PenstockError
from penstock.extras import Extra, MissingExtraError, install_command
from penstock.jars.cache import JarCorruptError, set_directory, unsound_jars
from penstock.jars.java import find_java
from penstock.jars.lock import AnyJarSet, LockedJar, locked_jars

ATTEMPTS = 3
REPOSITORY_VARIABLE = "PENSTOCK_JAR_REPOSITORY"
SPACE_NEEDED_BYTES = 256 * 1024 * 1024


class JarFetchError(PenstockError):
    """Ivy could not fetch every jar."""


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """The progress of a fetch, for display."""

    jar_set: AnyJarSet
    arrived: int
    wanted: int
    attempt: int


def fetch(
    jar_set: AnyJarSet,
    *,
    on_progress: Callable[[FetchProgress], None] = lambda _: None,
    attempts: int = ATTEMPTS,
) -> Path:
    """Fetch the set unless the cache has it; return its folder."""
    target = set_directory(jar_set)
    # Checked before anything is written: jars in a container image are on a read-only disk.
    if _is_whole(jar_set, target):
        return target
    with _storage_errors(target), _only_one_fetcher(target):
        if _is_whole(jar_set, target):
            return target
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as scratch:
            whole = _bring(jar_set, Path(scratch), attempts, on_progress)
            if target.exists():
                target.rename(Path(scratch) / "unsound")
            whole.rename(target)
    return target


def _is_whole(jar_set: AnyJarSet, target: Path) -> bool:
    return target.is_dir() and not unsound_jars(jar_set, target)


def _bring(
    jar_set: AnyJarSet, scratch: Path, attempts: int, on_progress: Callable[[FetchProgress], None]
) -> Path:
    jars = locked_jars(jar_set)
    arrived = scratch / "arrived"
    arrived.mkdir()
    settings, module = scratch / "settings.xml", scratch / "ivy.xml"
    settings.write_text(_ivy_settings(os.environ.get(REPOSITORY_VARIABLE)), encoding="utf-8")
    module.write_text(_ivy_module(jar_set, jars), encoding="utf-8")
    output = ""
    for attempt in range(1, attempts + 1):
        done = _run_ivy(scratch, settings, module, arrived)
        count = 0
        lines = []
        for line in done:
            lines.append(line)
            if "[SUCCESSFUL ]" in line:
                count += 1
                on_progress(FetchProgress(jar_set, count, len(jars), attempt))
        output = "".join(lines)
        wrong = unsound_jars(jar_set, arrived)
        if not wrong:
            return arrived
        for jar, reason in wrong:
            if reason != "missing":
                raise JarCorruptError(
                    f"{jar.file_name} arrived with a sha256 checksum that is not the locked one.",
                    remedy="Nothing was kept. Check your jar mirror, or try again.",
                )
    # Ivy fetches nothing when one is missing: name the ones that its output reports as not found.
    all_missing = [jar for jar, _ in wrong]
    not_found = [jar for jar in all_missing if f"{jar.artifact};{jar.version}: not found" in output]
    names = [jar.file_name for jar in not_found or all_missing]
    missing = ", ".join(names[:3])
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    raise JarFetchError(
        f"Could not fetch {missing}{more} in {attempts} attempts. {_first_complaint(output)}",
        remedy=(
            "Check the network (behind a proxy set JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=...), or "
            f"name a mirror in {REPOSITORY_VARIABLE}, then run `penstock jars fetch`."
        ),
    )


def _run_ivy(scratch: Path, settings: Path, module: Path, arrived: Path) -> Iterator[str]:
    command = [
        find_java().path,
        *("-cp", str(_ivy_jar()), "org.apache.ivy.Main"),
        *("-settings", str(settings), "-ivy", str(module), "-cache", str(scratch / "ivy-cache")),
        *("-retrieve", f"{arrived}/[artifact]-[revision].[ext]"),
    ]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None  # noqa: S101 -- asked for by stdout=PIPE
        yield from process.stdout


def _first_complaint(output: str) -> str:
    """The line of Ivy's output with the cause, if there is one."""
    explanation = ("Exception", "UnknownHost", "refused", "timed out", "No space")
    for line in output.splitlines():
        if any(word in line for word in explanation):
            return f"Ivy reports: {line.strip()[:300]}"
    return ""


def _ivy_jar() -> Path:
    # Located without importing pyspark, which takes seconds and is only for the pipeline.
    spec = importlib.util.find_spec("pyspark")
    origin = None if spec is None else spec.origin
    found = sorted((Path(origin).parent / "jars").glob("ivy-*.jar")) if origin else []
    if not found:
        raise MissingExtraError(
            "Jars are fetched by the Ivy inside PySpark, and all of PySpark is not installed here.",
            remedy=f"Run: {install_command(Extra.SPARK)}",
        )
    return found[-1]


def _ivy_settings(repository: str | None) -> str:
    root = f" root={quoteattr(repository)}" if repository else ""
    return (
        '<ivysettings><settings defaultResolver="public"/><resolvers>'
        f'<ibiblio name="public" m2compatible="true" usepoms="false"{root}/>'
        "</resolvers></ivysettings>"
    )


def _ivy_module(jar_set: AnyJarSet, jars: tuple[LockedJar, ...]) -> str:
    dependencies = "".join(
        f'<dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}"'
        f' transitive="false" conf="*->*">'
        f'<artifact name="{jar.artifact}" type="jar" ext="jar"/></dependency>'
        for jar in jars
    )
    return (
        f'<ivy-module version="2.0"><info organisation="penstock" module="{jar_set}"/>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


@contextmanager
def _storage_errors(target: Path) -> Iterator[None]:
    """Turn a full or read-only disk into one line with a remedy."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(target.parent).free
        if free < SPACE_NEEDED_BYTES and not target.is_dir():
            raise JarFetchError(
                f"Only {free // 2**20} MiB are free at {target.parent}.",
                remedy=f"Free {SPACE_NEEDED_BYTES // 2**20} MiB, or move PENSTOCK_CACHE.",
            )
        yield
    except OSError as error:
        raise JarFetchError(
            f"Could not write the jar cache at {target.parent}: {error.strerror or error}.",
            remedy="Free space or grant rights there, or set PENSTOCK_CACHE to another folder.",
        ) from error


@contextmanager
def _only_one_fetcher(target: Path) -> Iterator[None]:
    """Let only one process fetch at a time."""
    with (target.parent / f".{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
