"""An epoch: a number that orders the owners of a partition without a clock.

A partition's epoch is the controller's own epoch and a number which that controller never uses
twice. The controller's epoch is new at every start of a controller, so a partition's epoch is never
reused, even if the state file is lost or an old one is restored. Messages and file names use the
text form (`12.7`).
"""

import re
from dataclasses import dataclass
from typing import Self

# The limit of every number in a message. Fifteen digits are still readable, and below 2^53, so that
# every language holds them exactly.
INTEGER_MAX = 10**15 - 1
_TEXT = re.compile(r"(0|[1-9][0-9]{0,14})\.(0|[1-9][0-9]{0,14})")


@dataclass(frozen=True, order=True, slots=True)
class Epoch:
    controller_epoch: int
    number: int

    def __post_init__(self) -> None:
        for part in (self.controller_epoch, self.number):
            if not 0 <= part <= INTEGER_MAX:
                raise ValueError(f"an epoch is made of numbers of at most 15 digits, got {part!r}")

    def __str__(self) -> str:
        return f"{self.controller_epoch}.{self.number}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of `str`."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f"expected an epoch, for instance 12.7, got {text!r}")
        return cls(int(match[1]), int(match[2]))
