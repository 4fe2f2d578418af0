"""Decides what an answer of the API server means: done, retry, or which error. Pure.

Temporary failures (too many requests, a server error, no answer) are retried with growing pauses, a
bounded number of times. A refusal for lack of a right names the missing right and is not retried.
"""

from dataclasses import dataclass
from enum import Enum

from penstock.deployment.interface import DeploymentError
from penstock.model.json_text import read_json

ATTEMPTS_MAX = 6
PAUSE_FIRST_S = 0.1
PAUSE_MAX_S = 5.0


class Meaning(Enum):
    DONE = "done"
    TRY_AGAIN = "try again"
    CONFLICT = "conflict"
    NOT_FOUND = "not found"
    GONE = "gone"
    FORBIDDEN = "forbidden"
    UNKNOWN_CALLER = "unknown caller"
    REFUSED = "refused"


_MEANINGS = {
    401: Meaning.UNKNOWN_CALLER,
    403: Meaning.FORBIDDEN,
    404: Meaning.NOT_FOUND,
    409: Meaning.CONFLICT,
    410: Meaning.GONE,
    408: Meaning.TRY_AGAIN,
    429: Meaning.TRY_AGAIN,
}


class MissingRightError(DeploymentError):
    """The API server refuses the call: the role lacks a right."""

    exit_code = 5


class ApiUnavailableError(DeploymentError):
    """The API server still fails or does not answer after several attempts."""

    exit_code = 4


class NameTakenError(DeploymentError):
    """Another owner's object has the name that ours needs."""


@dataclass(frozen=True, slots=True)
class Right:
    """One right in a Kubernetes role."""

    verb: str
    resource: str
    api_group: str = ""

    def __str__(self) -> str:
        where = f" of {self.api_group}" if self.api_group else ""
        return f"{self.verb} {self.resource}{where}"


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    status: int
    body: bytes = b""
    retry_after_s: float | None = None


def meaning(status: int) -> Meaning:
    if 200 <= status < 300:
        return Meaning.DONE
    if status >= 500:
        return Meaning.TRY_AGAIN
    return _MEANINGS.get(status, Meaning.REFUSED)


def is_quota(answer: ApiAnswer) -> bool:
    """A full quota also answers 403; no right is missing then."""
    return answer.status == 403 and b"exceeded quota" in answer.body


def pause_s(attempt: int, retry_after_s: float | None, chance: float) -> float:
    """The pause after this attempt: doubled each time, with half of it random."""
    grown = min(PAUSE_MAX_S, PAUSE_FIRST_S * 2.0**attempt)
    chosen = grown * (0.5 + 0.5 * chance)
    return max(chosen, min(PAUSE_MAX_S, retry_after_s or 0.0))


def error_of(right: Right, answer: ApiAnswer, namespace: str) -> DeploymentError:
    """The error to raise for an answer that is final."""
    message = message_of(answer)
    match meaning(answer.status):
        case Meaning.FORBIDDEN if not is_quota(answer):
            return MissingRightError(
                f"Kubernetes refuses to {right} in namespace {namespace}: {message}",
                remedy=f"Give the controller's role the right to {right}.",
                is_retryable=False,
            )
        case Meaning.UNKNOWN_CALLER:
            return DeploymentError(
                f"Kubernetes rejects the credentials ({right}): {message}",
                remedy="Check the token, or the user of the kubeconfig.",
            )
        case Meaning.TRY_AGAIN | Meaning.CONFLICT | Meaning.GONE:
            return ApiUnavailableError(f"Kubernetes could not {right}: {message}")
        case Meaning.FORBIDDEN:
            return DeploymentError(f"Kubernetes did not {right}: {message}")
        case _:
            return DeploymentError(
                f"Kubernetes rejected the request to {right}: {message}", is_retryable=False
            )


def message_of(answer: ApiAnswer) -> str:
    """The server's message; never what we sent."""
    try:
        found = read_json(answer.body)
        explanation = str(found.get("message", "")) if isinstance(found, dict) else ""
    except ValueError:
        explanation = ""
    return f"{answer.status} {explanation[:300]}".strip() + (
        "" if explanation.endswith(".") else "."
    )
