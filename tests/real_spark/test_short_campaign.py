"""A campaign in its short form: a handful of faults, and a checker that is itself checked."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit.processes import processes_naming
from penstock.cli.laboratory.campaign import campaign_settings
from penstock.jars import USUAL_SETS, fetch
from penstock.laboratory.campaign.observed import CampaignPlan
from penstock.laboratory.campaign.report import reported
from penstock.laboratory.campaign.run import Campaign
from penstock.settings import Settings, load_settings

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(400),
]
# This seed harms consumer, controller, monitor and broker, makes a topic and grows it.
PLAN = CampaignPlan(seed=7, minutes=0.4, fault_every_s=4.0, records_per_s=1500)


def test_the_short_campaign_is_exact_and_its_checker_finds_what_is_planted(tmp_path: Path) -> None:
    """No record is lost or doubled, nobody unharmed is told to end, and a planted loss is found."""
    for jar_set in USUAL_SETS:
        fetch(jar_set)
    chosen = campaign_settings(tmp_path)
    flags = [text for name, value in chosen.items() for text in ("--set", f"{name}={value}")]
    settings = load_settings(flags=chosen, environment={}).settings
    with Campaign(PLAN, settings, flags=flags, say=print) as campaign:
        run = campaign.run()
        report = reported(run, campaign.check(), 1)
        assert report.fenced_unharmed == []
        assert report.is_successful, report
        assert (report.lost, report.doubled, run.not_injected) == (0, 0, [])
        assert report.faults == len(PLAN.faults)
        assert {"broker killed with -9", "consumer killed with -9"} <= set(report.faults_by_kind)
        assert report.aborted > 0
        lossy = campaign.check(changed_copy(settings, tmp_path / "lossy", removed))
        lost = sum(one.lost for one in lossy.verification.partitions)
        assert lossy.deliveries.lost == lost >= 1
        assert not reported(run, lossy, 1).is_successful
        doubled = campaign.check(changed_copy(settings, tmp_path / "doubled", added_again))
        duplicated = sum(one.duplicated for one in doubled.verification.partitions)
        assert doubled.deliveries.doubled == duplicated >= 1
        assert not reported(run, doubled, 1).is_successful
    assert processes_naming(str(tmp_path)) == []


def changed_copy(
    settings: Settings, lake: Path, change: Callable[[Path, dict[str, Any]], dict[str, Any]]
) -> str:
    """A copy of the lake with one more commit, which changes what one file of `plain` means."""
    shutil.copytree(settings.lake.root, lake)
    table = lake / "plain"
    log = sorted((table / "_delta_log").glob("*.json"))
    files: dict[str, dict[str, Any]] = {}
    for commit in log:
        for line in commit.read_text(encoding="utf-8").splitlines():
            action = json.loads(line)
            if "add" in action:
                files[action["add"]["path"]] = action["add"]
            if "remove" in action:
                files.pop(action["remove"]["path"], None)
    largest = max(files.values(), key=lambda add: add["size"])
    planted = table / "_delta_log" / f"{int(log[-1].stem) + 1:020}.json"
    planted.write_text(json.dumps(change(table, largest)), encoding="utf-8")
    return str(lake)


def removed(_: Path, add: dict[str, Any]) -> dict[str, Any]:
    return {"remove": {"path": add["path"], "dataChange": True}}


def added_again(table: Path, add: dict[str, Any]) -> dict[str, Any]:
    copy = f"{add['path']}.again.parquet"
    shutil.copy(table / add["path"], table / copy)
    return {"add": {**add, "path": copy}}
