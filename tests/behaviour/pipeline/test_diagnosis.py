"""What Spark's own words mean."""

import pytest

from penstock.pipeline.diagnosis import in_our_words, what_workers_lack
from penstock.pipeline.failures import (
    LakeRefusedError,
    SparkFailedError,
    TransformationFailedError,
)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("OSError: [Errno 28] No space left on device", LakeRefusedError),
        ("PermissionError: [Errno 13] Permission denied: '/lake'", LakeRefusedError),
        ("...KafkaSilentError: Kafka did not give orders-0 up to 7", SparkFailedError),
        ("Python worker exited unexpectedly (crashed)", SparkFailedError),
        ("ZeroDivisionError: division by zero", TransformationFailedError),
    ],
)
def test_failures_are_told_apart(said: str, kind: type[Exception]) -> None:
    """What passes is tried again; what is the function's fault stops its partition."""
    found = in_our_words(RuntimeError(f"An exception was thrown:\n  {said}\n\tat x"), "orders")
    assert type(found) is kind
    assert said.rpartition(": ")[2] in str(found)


@pytest.mark.parametrize(
    "said",
    [
        "ModuleNotFoundError: No module named 'penstock'",
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version",
        "[PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed",
        'java.io.IOException: Cannot run program "python3"',
    ],
)
def test_workers_that_cannot_run_our_code(said: str) -> None:
    """Then the connector carries, and the log says why."""
    assert said in what_workers_lack(RuntimeError(f"Job aborted\n{said}\n\tat y"))


def test_any_other_failure_is_not_the_workers_lack() -> None:
    """A full disk or a silent broker says nothing about what the workers have."""
    assert what_workers_lack(OSError(28, "No space left on device")) == ""
