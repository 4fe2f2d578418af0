"""How long an object store may take, and the error when it takes longer."""

from collections.abc import Mapping

# For one request with its answer. `lake.storage_options` may name others, under the same names.
TIME_LIMITS = {"timeout": "20s", "connect_timeout": "5s"}
# What fails is asked again within these: a consumer tries the whole batch again anyway.
RETRIES_MAX = 3
RETRY_S_MAX = 30


class ObjectStoreError(OSError):
    """The object store did not do what was asked, or did not answer in time."""


def with_time_limits(options: Mapping[str, str]) -> dict[str, str]:
    """Options for deltalake, which would otherwise ask again for minutes."""
    retries = {"max_retries": str(RETRIES_MAX), "retry_timeout": f"{RETRY_S_MAX}s"}
    given = {name.lower() for name in options}
    ours = {name: one for name, one in {**TIME_LIMITS, **retries}.items() if name not in given}
    return {**ours, **options}
