"""The demo in its short form: the live group's whole job, in a minute and a half."""

from pathlib import Path

import pytest

from kit.processes import processes_naming
from kit.program import penstock

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.campaign,
    pytest.mark.timeout(300),
]


def test_the_short_demo_holds_what_it_says(tmp_path: Path) -> None:
    """It grows, loses a consumer, its controller during a move, shrinks; every record once."""
    done = penstock("demo", "--short", "--out", str(tmp_path / "out"), timeout_s=280)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = dict(line.strip().rsplit("  ", 1) for line in done.stdout.splitlines() if "  " in line)
    figures = {name.strip(): value.strip() for name, value in rows.items()}
    assert figures["lost"] == figures["duplicated"] == "0", figures
    assert figures["records produced"] == figures["records in the lake"]
    for harm in ("killed with -9", "controller killed with -9 during a move", "grown to 6"):
        assert harm in done.stderr
    assert (tmp_path / "out/demo.png").stat().st_size > 20_000
    assert "data:image/png" in (tmp_path / "out/demo.html").read_text(encoding="utf-8")
    assert processes_naming("penstock-demo-") == []
