"""The base of all sections: frozen, unknown names refused, a sentence for every option."""

import json
import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=False, use_attribute_docstrings=False
    )


def option(default: Any, sentence: str, **constraints: Any) -> Any:
    """An option with its default, its sentence and pydantic constraints."""
    return Field(default=default, description=sentence, **constraints)


# Options of other programs are printed, copied and passed as arguments. A blank stands for what
# programs write between words, or nothing: `access.key`, `ACCESS_KEY`, `accessKey`.
PARTS_OF_SECRET_NAMES = (
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "access key",
    "account key",
    "private key",
    "customer key",
    "master key",
    "api key",
    "sas key",
    "azure.sas",
    "credential",
    "jaas",
)
SEPARATOR = "[._-]?"
# Short ones are secrets as the last word alone: `DB_PASS`, and not `spark.pass_through`.
ENDS_OF_SECRET_NAMES = ("pass", "pwd", "sas")
END_COMES_AFTER = "(^|[._-])"
# Such a name has one of the parts, and its value says only where the secret is.
NAMES_OF_PLACES = ("provider", "file", "location", "path")
_SECRET_NAME = re.compile(
    "|".join(
        [
            *(
                SEPARATOR.join(re.escape(word) for word in part.split())
                for part in PARTS_OF_SECRET_NAMES
            ),
            f"{END_COMES_AFTER}({'|'.join(ENDS_OF_SECRET_NAMES)})$",
        ]
    ),
    re.IGNORECASE,
)
# `https://user:password@host`: the part before the host of an address. Generated passwords have
# slashes, though an address should not; what is only digits before a slash is a port.
_PASSWORD_IN_ADDRESS = re.compile(r"://[^/@\s]*:(?![0-9]+/)[^@\s]*@")
# `-Djavax.net.ssl.keyStorePassword=x`, `?sv=1&sig=x`: a value that has a name of its own.
_NAMED_IN_TEXT = re.compile(r"""([^\s=&?;,"']+)=["']?[^\s=&?;,"']""")
_SIGNATURE = "sig"


def is_secret_name(name: str) -> bool:
    """Whether an option or variable of another program has a secret, by its name."""
    is_place = name.lower().endswith(NAMES_OF_PLACES)
    return _SECRET_NAME.search(name) is not None and not is_place


def has_password(address: str) -> bool:
    return _PASSWORD_IN_ADDRESS.search(address) is not None


def has_secret(text: str) -> bool:
    """Whether a text of free form has a password in an address, or an argument that is a secret."""
    named = _NAMED_IN_TEXT.findall(text)
    return has_password(text) or any(is_secret_name(n) or n.lower() == _SIGNATURE for n in named)


def without_secrets(value: dict[str, str]) -> dict[str, str]:
    """ValueError for a mapping of free names with a name or an address that has a secret."""
    for name in sorted(value):
        if is_secret_name(name) or has_secret(value[name]):
            raise ValueError(
                f"{name} is a secret, and what stands here is printed and copied; set it in the "
                "environment of the consumers and of the Spark server (AWS_SECRET_ACCESS_KEY, ...)"
            )
    return value


def listed_patterns(value: object) -> object:
    """ValueError for one text where a list is meant, with how to write it."""
    if isinstance(value, str):
        right = json.dumps([value])
        raise ValueError(f"{value!r} is one text; write a list: {right}")  # noqa: TRY004 -- pydantic catches only this
    return value


def checked_patterns(value: list[str]) -> list[str]:
    """Regular expressions as they are; ValueError for what is none, with what was meant."""
    for pattern in value:
        if not pattern:
            raise ValueError("'' is the name of nothing; write .* for all names, or take it out")
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(
                f"{pattern!r} is not a regular expression ({error}). {_meant_by(pattern)}"
            ) from None
    return value


def _meant_by(pattern: str) -> str:
    """What somebody probably means who writes file names' wildcards."""
    any_text = re.sub(r"(?<![.\])\]])\*", ".*", pattern)
    try:
        re.compile(any_text)
    except re.error:
        return r"Write \ before a character that is meant as itself, such as \( or \["
    return f"Any characters are .* there: write {any_text}"


def is_among(text: str, patterns: list[str]) -> bool:
    """Whether one of the patterns is for this text, as a whole."""
    return any(re.fullmatch(pattern, text) for pattern in patterns)
