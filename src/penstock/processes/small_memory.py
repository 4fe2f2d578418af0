"""Keeps a thin consumer thin: memory that is not used goes back to the system.

A thin consumer moves no records itself, yet a dozen threads (Kafka clients, gRPC, deltalake) each
get an allocator arena of their own that grows to its own peak and stays there. There are three
allocators in the process: the C library's, deltalake's, which reads its settings when deltalake is
imported, and pyarrow's, which only reads file footers here and needs none that hoards.
"""

import ctypes
import os

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_ARENAS = 2
_KEPT_BYTES = 256 * 1024
# deltalake's is jemalloc under a name of its own. One arena that keeps nothing: 14 MB less after
# three hundred commits, at the same speed.
_DELTALAKE = ("_RJEM_MALLOC_CONF", "narenas:1,dirty_decay_ms:0,muzzy_decay_ms:0")


def keep_memory_small() -> None:
    """To be called before deltalake is imported and before threads start."""
    os.environ.setdefault(*_DELTALAKE)
    import pyarrow as pa  # noqa: PLC0415 -- only whoever asks for this needs it

    pa.set_memory_pool(pa.system_memory_pool())
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # not glibc: nothing to tell it
    set_option(_M_ARENA_MAX, _ARENAS)
    set_option(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    set_option(_M_MMAP_THRESHOLD, _KEPT_BYTES)
