"""The token of a Spark Connect server: who has it opens sessions, and so runs code there.

A server that we start gets a token of its own, unless one is set. It is kept in a file that only
this user can read, named by the port. Clients of the same user find it there: a token is never an
argument of a process. Who connects from elsewhere sets `spark.token_file` or the environment.
"""

import errno
import os
import secrets
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from penstock.errors import PenstockError, SettingsError
from penstock.jars import cache_directory
from penstock.settings import Secret
from penstock.settings.sections import SparkSettings

# How Spark's own server is told its token.
SERVER_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
_TOKEN_BYTES = 32
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600


def _folders() -> tuple[Path, ...]:
    """Where tokens are kept: in a temporary folder if the cache is read-only, as in an image."""
    spare = Path(tempfile.gettempdir()) / f"penstock-tokens-{os.getuid()}"
    return cache_directory() / "run" / "spark" / "tokens", spare


def token_file(port: int) -> Path:
    """Where a server that we started on this machine keeps its token."""
    files = [folder / str(port) for folder in _folders()]
    return next((file for file in files if _is_ours(file.parent) and file.exists()), files[0])


def make_token(port: int) -> Secret:
    """A new token for the server at this port of this machine."""
    token, refusals = secrets.token_urlsafe(_TOKEN_BYTES), list[str]()
    forget_token(port)  # of a server that was killed
    for folder in _folders():
        try:
            _write(folder, str(port), token)
        except OSError as error:
            refusals.append(f"{folder} ({error.strerror})")
        else:
            return Secret(token)
    raise PenstockError(
        f"The token of the Spark server could not be written: {', '.join(refusals)}.",
        remedy="Set PENSTOCK_CACHE to a folder that can be written, or the token yourself: "
        "spark.token_file, or PENSTOCK_SPARK__TOKEN in the environment.",
    )


def _write(folder: Path, name: str, token: str) -> None:
    folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
    if not _is_ours(folder):
        raise PermissionError(errno.EACCES, "another user could read it")
    opened = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE)
    with os.fdopen(opened, "w", encoding="utf-8") as written:
        written.write(token)


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can read or change what is in it."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    is_private = stat.S_ISDIR(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
    return is_private and found.st_uid == os.getuid()


def forget_token(port: int) -> None:
    for folder in _folders():
        if _is_ours(folder):
            with suppress(OSError):  # a folder that cannot be written has none of ours
                (folder / str(port)).unlink(missing_ok=True)


def token_for(spark: SparkSettings) -> Secret | None:
    """The token that is set, or that of a server which this user started on this machine."""
    if spark.token is not None or spark.server_port is None:
        return spark.token
    file = token_file(spark.server_port)
    try:
        return Secret(file.read_text(encoding="utf-8")) if _is_ours(file.parent) else None
    except OSError:
        return None  # a server of somebody else, which may have none


def require_safe_server(spark: SparkSettings) -> None:
    """SettingsError for a server of another machine without TLS or token, unless that is meant."""
    if spark.server_port is not None or spark.insecure:
        return
    meant = "If a connection without it is meant, say so: spark.insecure: true."
    if spark.is_exposed:
        raise SettingsError(
            f"The connection to {spark.master} would not be encrypted.",
            remedy="Give the server TLS (`penstock spark start` with spark.certificate_file), and "
            f"write ;use_ssl=true in spark.master. {meant}",
        )
    if spark.token is None:
        raise SettingsError(
            f"There is no token for {spark.master}: whoever reaches a server without one can run "
            "code in it.",
            remedy="Set spark.token_file, or PENSTOCK_SPARK__TOKEN in the environment. If a "
            "server without one is meant, say so: spark.insecure: true.",
        )
