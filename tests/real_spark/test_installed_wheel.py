"""The wheel, installed in an environment of its own, away from the repository.

The packages it needs are those of this environment, by a path file: nothing is downloaded. Path
files of that folder are not read, so its own link to this checkout does not count.
"""

import os
import signal
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from functools import partial
from pathlib import Path

import pytest

from kit.extras import ROOT
from kit.group.demo import assert_the_demo_succeeds
from penstock.jars import JarSet, fetch

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300)]
UP_WITHIN_S = 500.0


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the locked tools of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("penstock-*.whl")
    return built


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`penstock` as pip has put it into a new environment."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    _pip("--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    (packages,) = home.glob("lib/python3*/site-packages")
    here = sysconfig.get_paths()["purelib"]
    (packages / "packages_of_the_tests.pth").write_text(f"{here}\n", encoding="utf-8")
    return home / "bin" / "penstock"


@pytest.fixture
def away(tmp_path: Path) -> Path:
    """A folder in which nothing of the repository is seen."""
    assert ROOT not in tmp_path.parents
    return tmp_path


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _environment() -> dict[str, str]:
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    return {name: value for name, value in os.environ.items() if name not in hidden}


def _run(
    program: Path, away: Path, *arguments: str, timeout_s: float = 300
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *arguments],
        cwd=away,
        env={**_environment(), "COLUMNS": "200"},
        timeout=timeout_s,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_has_the_locks_the_types_and_the_licence(wheel: Path) -> None:
    """What is no Python file comes along too, and nothing of the tests does."""
    names = zipfile.ZipFile(wheel).namelist()
    for jar_set in JarSet:
        assert f"penstock/jars/{jar_set}.lock" in names
    assert "penstock/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert all(name.startswith(("penstock/", "penstock-")) for name in names)


def test_the_program_is_the_installed_one(program: Path, away: Path) -> None:
    """Its code comes from the new environment, not from this checkout."""
    code = "import penstock, penstock.extras; print(penstock.__file__)"
    found = _run(program.parent / "python", away, "-c", code).stdout.strip()
    assert Path(found).is_relative_to(program.parents[1])


def test_help_and_doctor_work_away_from_the_repository(program: Path, away: Path) -> None:
    """Help is given; doctor finds extras, Java and jars, and misses only the broker."""
    fetch(JarSet.BROKER)
    fetch(JarSet.SPARK)
    assert _run(program, away, "--help").returncode == 0
    found = _run(program, away, "doctor", "--bootstrap-server", "127.0.0.1:9", "-o", "json")
    assert found.returncode == 4, found.stdout + found.stderr
    assert '"installed: connect, spark, kubernetes, page, laboratory"' in found.stdout
    assert "make" not in found.stdout


@pytest.mark.slow
def test_the_short_demo_holds_what_it_says(program: Path, away: Path) -> None:
    """It grows, loses a consumer, its controller during a move, shrinks; every record once."""
    fetch(JarSet.BROKER)
    fetch(JarSet.SPARK)
    run = partial(_run, program, away)
    assert_the_demo_succeeds(away / "out", "--short", partitions=6, timeout_s=850, run=run)


def test_up_brings_a_group_up_and_down_away_from_the_repository(program: Path, away: Path) -> None:
    """Broker, Spark, monitor and controller start from the wheel, and Ctrl-C ends them all."""
    fetch(JarSet.BROKER)
    fetch(JarSet.SPARK)
    log = away / "up.log"
    with log.open("w") as output:
        running = subprocess.Popen(
            [str(program), "up"], cwd=away, env=_environment(), stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + UP_WITHIN_S
        while "The group is up" not in log.read_text() and running.poll() is None:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.5)
        status = _wait_for_status(program, away, deadline)
        assert status.returncode == 0, status.stdout + status.stderr
        running.send_signal(signal.SIGINT)
        assert running.wait(240) == 0, log.read_text()
    finally:
        if running.poll() is None:
            running.terminate()
            running.wait(240)
    assert "Everything has stopped." in log.read_text()


def _wait_for_status(
    program: Path, away: Path, deadline: float
) -> subprocess.CompletedProcess[str]:
    """The controller writes its first status a moment after it was started."""
    while True:
        status = _run(program, away, "status", "-o", "json")
        if status.returncode == 0 or time.monotonic() > deadline:
            return status
        time.sleep(1)
