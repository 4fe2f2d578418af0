"""The errors for people: what went wrong and what to do about it.

The type names the cause (the settings, the environment, rights, the plan) and sets the exit code of
the command. All packages raise these; only `cli` turns them into text and an exit code.
"""

from typing import ClassVar


class PenstockError(Exception):
    """An error for people. `remedy` is what to do about it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".rstrip()


class UsageError(PenstockError):
    """The command's arguments are wrong."""

    exit_code = 2


class SettingsError(PenstockError):
    """The settings are wrong; the operator can correct them."""

    exit_code = 3


class UnreachableError(PenstockError):
    """Kafka or Kubernetes does not answer."""

    exit_code = 4


class NotPermittedError(PenstockError):
    """Kafka or Kubernetes refuses the call for lack of a right."""

    exit_code = 5


class NotFeasibleError(PenstockError):
    """No plan satisfies the limits, such as `consumers_max`."""

    exit_code = 6
