"""Every error a person can meet: what went wrong, what to do, and whose fault it is.

The type carries the blame (the settings, the environment, rights, the plan) and with it the exit
code that the command line promises. Rooms raise these; only `cli` turns them into text and a code.
"""

from typing import ClassVar


class PenstockError(Exception):
    """Something failed that a person should read about. `remedy` says what to do."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".rstrip()


class UsageError(PenstockError):
    """The command was called in a way that makes no sense."""

    exit_code = 2


class SettingsError(PenstockError):
    """The settings are wrong: the operator can mend them."""

    exit_code = 3


class UnreachableError(PenstockError):
    """Kafka or Kubernetes does not answer."""

    exit_code = 4


class NotPermittedError(PenstockError):
    """Kafka or Kubernetes answers, and refuses."""

    exit_code = 5


class NotFeasibleError(PenstockError):
    """The plan cannot be carried out as the bounds stand."""

    exit_code = 6
