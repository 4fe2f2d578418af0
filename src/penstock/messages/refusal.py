"""Why bytes were not accepted as a message, for counters and logs.

Text from the bytes appears only as a shortened `repr`, because it is untrusted.
"""

from dataclasses import dataclass
from enum import StrEnum

DETAIL_LENGTH_MAX = 300


class RefusalCode(StrEnum):
    """The kinds of refusal; each has its own counter."""

    EMPTY = "empty"
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    NOT_UTF8 = "not_utf8"
    NOT_JSON = "not_json"
    DUPLICATE_KEY = "duplicate_key"
    HEADER_MISSING = "header_missing"
    HEADER_MALFORMED = "header_malformed"
    HEADER_DISAGREES = "header_disagrees"
    UNKNOWN_TYPE = "unknown_type"
    FUTURE_VERSION = "future_version"
    PAST_VERSION = "past_version"
    FIELDS_INVALID = "fields_invalid"
    OTHER_GROUP = "other_group"
    WRONG_TOPIC = "wrong_topic"
    WRONG_MAILBOX = "wrong_mailbox"


@dataclass(frozen=True, slots=True)
class Refusal:
    code: RefusalCode
    detail: str
    size_bytes: int = 0
    event_type: str | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


class RefusedError(Exception):
    """Carries a refusal inside the codec; `decode` turns it into a `Refusal`."""

    def __init__(self, code: RefusalCode, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail[:DETAIL_LENGTH_MAX]
