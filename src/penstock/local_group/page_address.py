"""Where the live page of a local group listens."""

import socket

from penstock.settings.sections import PageSettings


def free_address(page: PageSettings) -> str:
    """The address of the settings, or the same host with any free port when it is taken."""
    family = socket.AF_INET6 if ":" in page.host else socket.AF_INET
    for port in (page.port, 0):
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((page.host, port))
            except OSError:
                continue
            host = page.address.rpartition(":")[0]
            return f"{host}:{trial.getsockname()[1]}"
    return page.address
