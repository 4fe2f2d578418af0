"""The demo itself: the whole job, with everything that dies in it."""

import json
from pathlib import Path

import pytest

from kit.processes import processes_naming
from kit.program import penstock

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.live,
    pytest.mark.timeout(600),
]


def test_the_demo_holds_what_it_says(tmp_path: Path) -> None:
    """Every record once, the harm done, a picture written, nothing left running."""
    done = penstock("demo", "--out", str(tmp_path / "out"), timeout_s=580)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = dict(line.strip().rsplit("  ", 1) for line in done.stdout.splitlines() if "  " in line)
    figures = {name.strip(): value.strip() for name, value in rows.items()}
    assert figures["lost"] == figures["duplicated"] == "0", json.dumps(figures)
    assert figures["records produced"] == figures["records in the lake"]
    for harm in ("consumer", "controller killed with -9 during a move", "grown to 12 partitions"):
        assert harm in done.stderr
    assert (tmp_path / "out/demo.png").stat().st_size > 20_000
    assert "data:image/png" in (tmp_path / "out/demo.html").read_text(encoding="utf-8")
    assert processes_naming("penstock-demo-") == []
