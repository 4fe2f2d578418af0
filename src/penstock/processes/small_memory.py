"""Keeps the memory of a thin consumer small: unused memory goes back to the system.

A thin consumer moves no records itself, but each of its dozen threads (Kafka clients, gRPC,
deltalake) gets its own allocator arena, which grows to its peak and stays there. The process has
three allocators: the C library's; deltalake's, which reads its settings on import; and pyarrow's,
which only reads file footers here.
"""

import ctypes
import os

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_ARENAS = 2
_KEPT_BYTES = 256 * 1024
# deltalake uses jemalloc with its own prefix. One arena that keeps nothing saves 14 MB after three
# hundred commits, at the same speed.
_DELTALAKE = ("_RJEM_MALLOC_CONF", "narenas:1,dirty_decay_ms:0,muzzy_decay_ms:0")


def keep_memory_small() -> None:
    """Call this before deltalake is imported and before threads start."""
    os.environ.setdefault(*_DELTALAKE)
    import pyarrow as pa  # noqa: PLC0415 -- large, and only consumers need it

    pa.set_memory_pool(pa.system_memory_pool())
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # not glibc
    set_option(_M_ARENA_MAX, _ARENAS)
    set_option(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    set_option(_M_MMAP_THRESHOLD, _KEPT_BYTES)
