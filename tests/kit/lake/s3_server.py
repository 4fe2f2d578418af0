"""A real S3 server on this machine: versitygw over a folder, compiled once where Go is present.

It refuses a conditional write of what is there already, for writers at the same instant too, as
Amazon's does; the lake's ledger rests on that. `make s3-server` compiles it, which
takes two minutes: apart from the tests, because a test's time is bounded.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from kit.free_ports import free_ports
from penstock.jars import cache_directory
from penstock.pipeline.connect_server import is_listening
from penstock.processes import ProcessIdentity, start_child, stop

MODULE, VERSION = "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"
KEY, SECRET, REGION = "tester", "tester-secret", "us-east-1"
BUCKET = "lake"
ATTEMPTS = 3


def server_binary() -> Path:
    return cache_directory() / f"versitygw-{VERSION}" / "versitygw"


def compile_server() -> None:
    """Where it cannot be had, the tests are skipped and say so."""
    binary = server_binary()
    if binary.is_file() or shutil.which("go") is None:
        return
    sys.stderr.write("compiling an S3 server for the tests (about two minutes, once)\n")
    scratch = binary.parent.with_name(f"{binary.parent.name}.{os.getpid()}")
    environment = {**os.environ, "GOBIN": str(scratch)}
    for _ in range(ATTEMPTS):  # what has arrived is kept
        done = subprocess.run(
            ["go", "install", f"{MODULE}@{VERSION}"], env=environment, check=False
        )
        if done.returncode == 0:
            scratch.replace(binary.parent)
            return
    sys.stderr.write("the S3 server could not be compiled: its tests will be skipped\n")


@dataclass(frozen=True, slots=True)
class S3Server:
    endpoint: str
    folder: Path
    process: ProcessIdentity

    @property
    def storage_options(self) -> dict[str, str]:
        """For deltalake and `penstock verify`; the keys are in the environment."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": REGION,
        }

    @property
    def spark_options(self) -> dict[str, str]:
        return {
            "spark.hadoop.fs.s3a.endpoint": self.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": REGION,
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }


@contextmanager
def running_s3_server(folder: Path) -> Iterator[S3Server]:
    (port,) = free_ports(1)
    buckets, sidecar = folder / "buckets", folder / "sidecar"
    (buckets / BUCKET).mkdir(parents=True)
    sidecar.mkdir()
    command = [
        str(server_binary()),
        *("--port", f"127.0.0.1:{port}", "--region", REGION, "--quiet"),
        *("posix", "--sidecar", str(sidecar), str(buckets)),
    ]
    keys = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
    server = start_child(command, log_file=folder / "s3.log", environment={**os.environ, **keys})
    try:
        deadline_s = time.monotonic() + 90
        while not is_listening("127.0.0.1", port):
            assert time.monotonic() < deadline_s, (folder / "s3.log").read_text(encoding="utf-8")
            time.sleep(0.05)  # nothing tells us; asking is the only way to know
        yield S3Server(f"http://127.0.0.1:{port}", buckets / BUCKET, server)
    finally:
        stop(server, grace_s=5)


@contextmanager
def s3_for_tests(folder: Path) -> Iterator[S3Server]:
    """A server whose keys are in the environment; the test is skipped where there is none."""
    if not server_binary().is_file():
        pytest.skip("no S3 server: `make s3-server` compiles it, where Go is installed")
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("AWS_ACCESS_KEY_ID", KEY)
        changed.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        with running_s3_server(folder) as server:
            yield server


if __name__ == "__main__":
    compile_server()
