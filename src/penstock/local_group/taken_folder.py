"""Allows one group for each folder: a second one is refused, and is told who holds the folder."""

import os
import socket
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from penstock.controller.process.prefix_holder import PrefixTakenError
from penstock.errors import PenstockError
from penstock.state_directory import DirectoryTakenError, StateDirectory

# The controller of a group that was killed ends within this.
_FORMER_CONTROLLER_ENDS_S = 3.0


class FolderTakenError(PenstockError):
    """Another group runs in the folder."""

    exit_code = PrefixTakenError.exit_code


def take_folder(until: ExitStack, directory: Path) -> StateDirectory:
    """Hold the folder until the stack ends. FolderTakenError while another group does.

    The controller's own lock is only looked at: the controller, a child, takes it itself.
    """
    since = datetime.now(UTC)
    holder = f"process {os.getpid()} on {socket.gethostname()}, "
    holder += f"since {since:%Y-%m-%d %H:%M:%S} UTC"
    own = StateDirectory(directory / "up", "up", holder=holder)
    controllers = StateDirectory(
        directory / "controller", "controller", wait_s=_FORMER_CONTROLLER_ENDS_S
    )
    try:
        until.enter_context(own)
        with controllers:
            pass
    except DirectoryTakenError as error:
        raise FolderTakenError(
            f"Another group runs in {directory} ({error.holder}).",
            remedy="Stop that one first, or take another folder: --set controller.directory="
            "DIR. Nothing of the other was touched.",
        ) from None
    return own
