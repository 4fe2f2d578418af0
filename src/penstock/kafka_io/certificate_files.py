"""Looks into the files of certificates and keys before any client does.

The clients say what is wrong in the words of their TLS library, and Spark's Java client only after
a consumer has started. Every client is made of properties that were checked here.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from penstock.errors import SettingsError
from penstock.settings.sections import KafkaSettings

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----")
_BYTES_MAX = 16 * 1024 * 1024
_CERTIFICATE, _KEY, _LOCKED_KEY = "CERTIFICATE", "PRIVATE KEY", "ENCRYPTED PRIVATE KEY"
_KEY_FILE = "ssl.key.location"
_BOTH = "this file holds the private key and the certificate, for Spark's Java client."
_NAME_THE_FILE = "Name the file that has it."
# By the setting: what its file must have.
_NEEDED = {
    "ssl.ca.location": (_CERTIFICATE,),
    "ssl.certificate.location": (_CERTIFICATE,),
    _KEY_FILE: (_KEY, _CERTIFICATE),
}


def require_certificates(kafka: KafkaSettings) -> None:
    """SettingsError for a file that is not there, or lacks what a client needs of it."""
    has_password = kafka.ssl_key_password is not None
    for setting, file in _files(kafka):
        wrong = wrong_with(setting, _text_of(setting, file), has_password=has_password)
        if wrong is not None:
            fault, remedy = wrong
            raise SettingsError(f"{setting}: {file} {fault}.", remedy=remedy)


def wrong_with(setting: str, text: str, *, has_password: bool) -> tuple[str, str] | None:
    """What is wrong with the file's text, and what to do about it. Pure."""
    blocks = sorted(set(_BLOCK.findall(text)))
    if not blocks:
        return (
            "is no PEM file",
            "A PEM file is text with lines such as -----BEGIN CERTIFICATE-----.",
        )
    for needed in _NEEDED[setting]:
        if not any(one.endswith(needed) for one in blocks):
            remedy = f"Add the {needed}: {_BOTH}" if setting == _KEY_FILE else _NAME_THE_FILE
            return f"has no {needed}, only {' and '.join(blocks)}", remedy
    if setting != _KEY_FILE:
        return None
    keys = [one for one in blocks if one.endswith(_KEY)]
    if not {_KEY, _LOCKED_KEY} & set(keys):
        return (
            f"has its key in the form {keys[0]}, which Spark's Java client cannot read",
            "Write it in the form PKCS #8: openssl pkcs8 -topk8 -nocrypt -in OLD -out NEW",
        )
    if _KEY not in keys and not has_password:
        return (
            "has a key with a password, and no password is set",
            "Set kafka.ssl_key_password_file or PENSTOCK_KAFKA__SSL_KEY_PASSWORD.",
        )
    return None


def _files(kafka: KafkaSettings) -> Iterator[tuple[str, Path]]:
    for setting in _NEEDED:
        if setting in kafka.properties:
            yield setting, Path(kafka.properties[setting])


def _text_of(setting: str, file: Path) -> str:
    if not file.exists():
        relative = "" if file.is_absolute() else f" (it is looked for in {Path.cwd()})"
        raise SettingsError(
            f"{setting}: {file} does not exist{relative}.",
            remedy="Name a PEM file in kafka.properties.",
        )
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(_BYTES_MAX)
    except OSError as error:
        raise SettingsError(
            f"{setting}: {file} cannot be read: {error.strerror or error}.",
            remedy="Name a PEM file that this user may read.",
        ) from error
