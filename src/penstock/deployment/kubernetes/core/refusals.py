"""What the API server's answers mean for us. Pure.

Passing trouble (a conflict, too many requests, a server that stumbles or is away) is tried again
with growing pauses, a bounded number of times. A refusal for lack of a right is told with the right
that is missing, and not tried again.
"""

import json
from dataclasses import dataclass
from enum import Enum

from penstock.deployment.interface import DeploymentError

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
    """The API server answers, and refuses: the role lacks a right."""

    exit_code = 5


class ApiUnavailableError(DeploymentError):
    """The API server does not answer, or stumbles, after several attempts."""

    exit_code = 4


class NameTakenError(DeploymentError):
    """An object that is not ours has the name that ours would have."""


@dataclass(frozen=True, slots=True)
class Right:
    """One right as a role writes it."""

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
    """A full quota comes as 403, and has nothing to do with rights."""
    return answer.status == 403 and b"exceeded quota" in answer.body


def pause_s(attempt: int, retry_after_s: float | None, chance: float) -> float:
    """Before the attempt after this one: doubled each time, half of it left to chance."""
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
                f"Kubernetes does not know who asks ({right}): {message}",
                remedy="Check the token, or the user of the kubeconfig.",
            )
        case Meaning.TRY_AGAIN | Meaning.CONFLICT | Meaning.GONE:
            return ApiUnavailableError(f"Kubernetes could not {right}: {message}")
        case Meaning.FORBIDDEN:
            return DeploymentError(f"Kubernetes did not {right}: {message}")
        case _:
            return DeploymentError(
                f"Kubernetes did not accept to {right}: {message}", is_retryable=False
            )


def message_of(answer: ApiAnswer) -> str:
    """The server's own words; never what we sent."""
    try:
        found = json.loads(answer.body)
        explanation = str(found.get("message", "")) if isinstance(found, dict) else ""
    except ValueError:
        explanation = ""
    return f"{answer.status} {explanation[:300]}".strip() + (
        "" if explanation.endswith(".") else "."
    )
