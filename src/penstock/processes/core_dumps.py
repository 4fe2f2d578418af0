"""A crash leaves no copy of the memory on disk: every secret is in it, in clear.

Children inherit the limit, Spark and the broker too. Only the soft limit is lowered, so that who
looks for the cause of a crash can raise it for a running process: `prlimit --core=unlimited`.
"""

import resource


def leave_no_core_dumps() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))
