"""Keeps a thin consumer thin: memory that is not used goes back to the system.

A thin consumer moves no records itself, yet a dozen threads (Kafka clients, gRPC, deltalake) each
get an allocator arena of their own that grows to its own peak and stays there. Two arenas for all
cost nothing at these rates. pyarrow reads file footers only, and needs no allocator that hoards.
"""

import ctypes

import pyarrow as pa

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_ARENAS = 2
_KEPT_BYTES = 256 * 1024


def keep_memory_small() -> None:
    """To be called before threads start; where the C library is another one, nothing changes."""
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # not glibc: nothing to tell it
    set_option(_M_ARENA_MAX, _ARENAS)
    set_option(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    set_option(_M_MMAP_THRESHOLD, _KEPT_BYTES)
