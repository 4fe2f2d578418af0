"""What a consumer's start must not pay for."""

import subprocess
import sys

# Libraries that take a tenth of a second of a core or more to import, and what else pulls them in.
NOT_AT_THE_START = ("kafka", "kubernetes", "matplotlib", "ortools", "pandas")


def test_a_start_imports_nothing_that_only_some_consumers_need() -> None:
    """Twenty consumers may start together: each library costs every one of them a core's time."""
    code = "import sys, penstock.consumer.process; print(*sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    imported = {name.partition(".")[0] for name in answer.stdout.split()}
    assert "penstock" in imported
    assert imported.isdisjoint(NOT_AT_THE_START)
