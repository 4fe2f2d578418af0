"""Which addresses are on this machine: what is sent to them never leaves it."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether what is sent to this host never leaves the machine."""
    bare = host.strip("[]").lower()
    # Names below `localhost` are none of these: not every resolver keeps them on the machine.
    if bare == "localhost":
        return True
    try:
        return ip_address(bare).is_loopback
    except ValueError:
        return False
