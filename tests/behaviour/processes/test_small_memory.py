"""Allocators are configured before they start."""

import os
import subprocess
import sys

PROGRAM = """
import os, sys
import penstock.cli.consumer as command
assert "deltalake" not in sys.modules, "it is loaded before anybody can tell its allocator"
command.keep_memory_small()
import pyarrow
print(pyarrow.default_memory_pool().backend_name, os.environ["_RJEM_MALLOC_CONF"])
"""


def allocator_settings(**environment: str) -> list[str]:
    # polars, which other tests import, sets this one for the whole test process.
    own = {name: value for name, value in os.environ.items() if name != "_RJEM_MALLOC_CONF"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        env={**own, **environment},
    )
    return done.stdout.split()


def test_allocators_are_configured_before_they_start() -> None:
    """Deltalake uses one arena that keeps nothing, and pyarrow the system's allocator."""
    assert allocator_settings() == ["system", "narenas:1,dirty_decay_ms:0,muzzy_decay_ms:0"]


def test_what_the_operator_set_stays() -> None:
    """A setting of the operator is not overwritten."""
    assert allocator_settings(_RJEM_MALLOC_CONF="narenas:4")[1] == "narenas:4"
