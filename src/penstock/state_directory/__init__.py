"""A process's own directory: locked by exactly one, with one state file that is whole or ignored.

For whoever must know at its start how its last life ended. It decides nothing about what the
content means.
"""

from penstock.state_directory.directory import DirectoryTakenError, StateDirectory
from penstock.state_directory.state_file import BrokenState, decode_state, encode_state

__all__ = [
    "BrokenState",
    "DirectoryTakenError",
    "StateDirectory",
    "decode_state",
    "encode_state",
]
