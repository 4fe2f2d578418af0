"""What the set-up script says and does where Java or Python is missing or too old."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOOLS = ("bash", "dirname", "sed", "head", "grep", "id", "env")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A PATH with hardly anything on it."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in TOOLS:
        found = next(p for p in ("/usr/bin", "/bin") if Path(p, tool).exists())
        (tools / tool).symlink_to(Path(found, tool))
    return tools


def program(machine: Path, name: str, script: str) -> None:
    path = machine / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def install(machine: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if k not in {"JAVA_HOME", "PYTHON"}}
    return subprocess.run(
        ["/bin/bash", str(ROOT / "setup/install.sh")],
        env={**clean, "PATH": str(machine), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("java", "explanation"),
    [(None, "there is none"), ('echo "version \\"11.0.1\\"" >&2', "found 11")],
)
def test_without_java_an_ordinary_user_is_told_what_to_run(
    machine: Path, java: str | None, explanation: str
) -> None:
    """Not root: stop, with the exact command."""
    program(machine, "id", "echo 1000")
    if java:
        program(machine, "java", java)
    done = install(machine)
    assert done.returncode == 1
    assert explanation in done.stderr
    assert "sudo apt-get install -y openjdk-17-jre-headless" in done.stderr


def test_without_java_root_on_debian_gets_it_installed(machine: Path, tmp_path: Path) -> None:
    """Root: the headless JRE is installed; the next missing thing is then Python."""
    if not Path("/etc/debian_version").exists():
        pytest.skip("only Debian has apt-get to be called")
    program(machine, "id", "echo 0")
    program(machine, "apt-get", f'echo "$@" >> {tmp_path}/asked')
    done = install(machine, PYTHON="no-such-python")
    asked = (tmp_path / "asked").read_text(encoding="utf-8")
    assert "openjdk-17-jre-headless" in asked
    assert "there is no no-such-python" in done.stderr


def test_a_python_too_old_is_named(machine: Path) -> None:
    """The version found and how to name another."""
    program(machine, "java", 'echo "version \\"17.0.1\\"" >&2')
    program(machine, "python3", 'case "$1" in -V) echo Python 3.9.2;; *) exit 1;; esac')
    done = install(machine)
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed, python3 is Python 3.9.2" in done.stderr


def test_without_venv_an_ordinary_user_is_told_what_to_run(machine: Path) -> None:
    """Debian splits venv off; say which package."""
    program(machine, "id", "echo 1000")
    program(machine, "java", 'echo "version \\"21.0.1\\"" >&2')
    program(machine, "python3", 'case "$2" in *ensurepip*) exit 1;; *) exit 0;; esac')
    done = install(machine)
    assert done.returncode == 1
    assert "sudo apt-get install -y python3-venv" in done.stderr


def test_pip_resolves_nothing_that_the_locks_do_not_name() -> None:
    """A new release of a locked package must not break the set-up of a fresh machine."""
    script = (ROOT / "setup/install.sh").read_text(encoding="utf-8")
    installs = [line for line in script.splitlines() if "pip" in line and " install " in line]
    assert len(installs) == 2
    assert all("--no-deps" in line for line in installs)
