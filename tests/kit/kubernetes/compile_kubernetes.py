"""Compiles the test cluster, unless it is compiled already; run by the Makefile.

It is separate from the tests, because it takes minutes and a test's time is limited.
"""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from kit.kubernetes.cluster_recipe import RECIPE, cluster_cache, is_compiled, reason_to_skip


def main() -> int:
    if os.environ.get("PENSTOCK_TEST_KUBECONFIG"):
        return 0  # the tests use that cluster
    reason = reason_to_skip(real_pods=False)
    if reason:
        sys.stderr.write(f"{reason}; its tests will be skipped\n")
        return 0
    if is_compiled():
        return 0
    sys.stderr.write("compiling Kubernetes for the tests (about six minutes, once)\n")
    done = subprocess.run(
        ["bash", str(RECIPE), "build"],
        env={**os.environ, "CLUSTER_CACHE": str(cluster_cache())},
        stdout=sys.stderr,
        check=False,
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
