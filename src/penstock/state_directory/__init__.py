"""A directory locked by one process, with a state file that is either complete or ignored.

A process uses it to find out at its start how its previous run ended. The content is the caller's.
"""

from penstock.state_directory.directory import (
    DirectoryHolder,
    DirectoryTakenError,
    StateDirectory,
    holder_of,
)
from penstock.state_directory.state_file import BrokenState, decode_state, encode_state

__all__ = [
    "BrokenState",
    "DirectoryHolder",
    "DirectoryTakenError",
    "StateDirectory",
    "decode_state",
    "encode_state",
    "holder_of",
]
