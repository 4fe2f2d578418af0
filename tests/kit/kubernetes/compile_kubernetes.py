"""Compiles the test cluster if there is none and Go is installed; run by the Makefile.

It is separate from the tests, because it takes minutes and a test's time is limited.
"""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from kit.kubernetes.kubernetes_cluster import k8s_cache, setup_script


def main() -> int:
    setup = setup_script()
    if os.environ.get("PENSTOCK_TEST_KUBECONFIG") or isinstance(setup, str):
        return 0  # the tests report what they use, or why they are skipped
    if not (k8s_cache() / "bin" / "k8sbox").is_file():
        sys.stderr.write("compiling Kubernetes for the tests (about six minutes, once)\n")
    k8s_cache().mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "K8S_CACHE": str(k8s_cache())}
    done = subprocess.run(
        ["bash", str(setup), "build"],
        env=environment,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
