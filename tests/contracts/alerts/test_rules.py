"""The alert rules and the dashboard, judged by Prometheus's own tools.

Every alert has a case in which it fires, and one beside it in which it must not. The series are
written by the names of the definitions.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from documents.alert_rules import ALERTS, RUNBOOKS, rules_yaml
from documents.dashboard import dashboard, expressions
from documents.links import anchors
from kit.generated_files import ROOT
from kit.promtool import promtool
from penstock.metrics import Kind, Metric, of_consumer, of_every_process
from penstock.metrics import of_controller as of
from penstock.metrics.catalogue import METRICS


def series(metric: Metric, values: str, **labels: str) -> dict[str, str]:
    """A series, one value a minute; `1+2x5` is 1, 3, 5 and so on."""
    text = ",".join(f'{name}="{value}"' for name, value in {"group": "g", **labels}.items())
    return {"series": f"{metric.name}{{{text}}}", "values": values}


BUILD = series(of_every_process.BUILD, "1x60", process="consumer", version="0.1.0")
LEADING = series(of.LEADING, "1x60")
OTHER_BUILD = series(
    of_every_process.BUILD, "1x60", group="other", process="consumer", version="0.1.0"
)
OTHER_LEADING = series(of.LEADING, "1x60", group="other")
OBJECTIVE = series(of.FRESHNESS_OBJECTIVE, "300x60")


@dataclass(frozen=True, slots=True)
class Case:
    """`labels` are those of the alert that is expected after so many minutes; None: none."""

    alert: str
    given: tuple[dict[str, str], ...]
    minutes: int
    labels: dict[str, str] | None


def condition(name: str, values: str) -> dict[str, str]:
    return series(of.CONDITION, values, condition=name)


FIRES = {"group": "g"}
TOPIC = {"group": "g", "topic": "orders"}
TABLE = {"group": "g", "table": "orders"}
CASES = (
    Case(
        "PenstockFreshnessOverObjective",
        (OBJECTIVE, series(of.TOPIC_FRESHNESS, "301x60", topic="orders")),
        5,
        TOPIC,
    ),
    Case(
        "PenstockFreshnessOverObjective",
        (
            OBJECTIVE,
            series(of.TOPIC_FRESHNESS, "299x60", topic="orders"),
            series(of.TOPIC_BACKLOG_SECONDS, "900x60", topic="orders"),
        ),
        5,
        None,
    ),
    # Its age is not known: the backlog counts.
    Case(
        "PenstockFreshnessOverObjective",
        (OBJECTIVE, series(of.TOPIC_BACKLOG_SECONDS, "900x60", topic="orders")),
        5,
        TOPIC,
    ),
    # A peak that passes within two minutes wakes nobody.
    Case(
        "PenstockFreshnessOverObjective",
        (OBJECTIVE, series(of.TOPIC_FRESHNESS, "1x3 400 400 1x50", topic="orders")),
        6,
        None,
    ),
    Case(
        "PenstockPartitionStopped",
        (series(of.STOPPED, "2x60", topic="orders", reason="schema_changed"),),
        2,
        {**TOPIC, "reason": "schema_changed"},
    ),
    Case("PenstockPartitionStopped", (), 2, None),
    Case("PenstockPartitionUnread", (condition("unread", "1x60"),), 6, FIRES),
    Case("PenstockPartitionUnread", (condition("unread", "1 1 0 1 1 1 0x60"),), 6, None),
    Case("PenstockGroupAtMaximum", (condition("at_maximum", "1x60"),), 11, FIRES),
    Case("PenstockGroupAtMaximum", (condition("unread", "1x60"),), 11, None),
    # A standby alone does not lead.
    Case("PenstockControllerSilent", (BUILD, series(of.LEADING, "0x60")), 2, FIRES),
    Case("PenstockControllerSilent", (BUILD, LEADING), 2, None),
    Case("PenstockControllerSilent", (BUILD, LEADING, series(of.SILENCE, "0+60x60")), 3, FIRES),
    Case("PenstockControllerSilent", (), 2, {}),
    # What docs/metrics.md says: another group hides that nothing of this one can be scraped.
    Case("PenstockControllerSilent", (OTHER_BUILD, OTHER_LEADING), 2, None),
    Case("PenstockMeasurementOld", (series(of.MEASUREMENT_AGE, "61x60"),), 2, FIRES),
    Case("PenstockMeasurementOld", (series(of.MEASUREMENT_AGE, "2x60"),), 2, None),
    # A monitor that never spoke; and one that has, and is late by less than a minute.
    Case("PenstockMeasurementOld", (condition("blind", "1x60"),), 2, FIRES),
    Case(
        "PenstockMeasurementOld",
        (condition("blind", "1x60"), series(of.MEASUREMENT_AGE, "20x60")),
        5,
        None,
    ),
    Case("PenstockGrowthDidNotHelp", (series(of.GROWTH_HELD, "1x60"),), 2, FIRES),
    Case("PenstockGrowthDidNotHelp", (series(of.GROWTH_HELD, "0x60"),), 2, None),
    Case(
        "PenstockDeadLettersRising",
        (series(of_consumer.DEAD_LETTERS, "0x5 3x60", consumer="1"),),
        10,
        FIRES,
    ),
    # Old ones stay counted, and wake nobody again.
    Case(
        "PenstockDeadLettersRising",
        (series(of_consumer.DEAD_LETTERS, "0x5 3x60", consumer="1"),),
        30,
        None,
    ),
    Case(
        "PenstockCommitsConflicting",
        (
            series(of_consumer.CONFLICTS, "0+30x60", consumer="1", table="orders"),
            series(of_consumer.COMMITS, "0+20x60", consumer="1", table="orders"),
        ),
        25,
        TABLE,
    ),
    Case(
        "PenstockCommitsConflicting",
        (
            series(of_consumer.CONFLICTS, "0+10x60", consumer="1", table="orders"),
            series(of_consumer.COMMITS, "0+20x60", consumer="1", table="orders"),
            series(of_consumer.REFUSED, "0x10 1x60", consumer="1"),
        ),
        25,
        None,
    ),
    Case(
        "PenstockCommitsConflicting",
        (series(of_consumer.REFUSED, "0+5x60", consumer="1"),),
        25,
        FIRES,
    ),
    Case(
        "PenstockTableUnhealthy",
        (series(of_consumer.TABLE_LOG_ENTRIES, "1001x60", consumer="1", table="orders"),),
        11,
        TABLE,
    ),
    Case(
        "PenstockTableUnhealthy",
        (series(of_consumer.TABLE_FILES, "100001x60", consumer="1", table="orders"),),
        11,
        TABLE,
    ),
    Case(
        "PenstockTableUnhealthy",
        (series(of_consumer.UPKEEPS, "0x3 1x5 2x5 3x60", consumer="1", outcome="failed"),),
        30,
        FIRES,
    ),
    Case(
        "PenstockTableUnhealthy",
        (
            series(of_consumer.TABLE_LOG_ENTRIES, "60x60", consumer="1", table="orders"),
            series(of_consumer.UPKEEPS, "0+1x60", consumer="1", outcome="done"),
        ),
        30,
        None,
    ),
)


def as_test(case: Case) -> dict[str, Any]:
    (alert,) = (one for one in ALERTS if one.name == case.alert)
    expected = []
    if case.labels is not None:
        expected = [{"exp_labels": {**case.labels, "severity": alert.severity}}]
    return {
        "interval": "1m",
        "input_series": list(case.given),
        "alert_rule_test": [
            {"eval_time": f"{case.minutes}m", "alertname": case.alert, "exp_alerts": expected}
        ],
    }


def without_annotations() -> str:
    """Promtool compares annotations as well, whose texts have figures."""
    rules = yaml.safe_load(rules_yaml())
    for one in rules["groups"][0]["rules"]:
        del one["annotations"]
    return yaml.safe_dump(rules)


def test_every_alert_has_a_case_of_each_kind() -> None:
    """One in which it fires, and one in which it does not."""
    names = {one.name for one in ALERTS}
    assert {one.alert for one in CASES if one.labels is not None} == names
    assert {one.alert for one in CASES if one.labels is None} == names


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yaml"
    file.write_text(without_annotations())
    return file


def test_alerts_fire_when_they_should_and_only_then(rules: Path) -> None:
    """`promtool test rules` runs every case."""
    file = rules.with_name("test.yaml")
    tests = [as_test(one) for one in CASES]
    file.write_text(yaml.safe_dump({"rule_files": [rules.name], "tests": tests}))
    done = promtool("test", "rules", file)
    assert done.returncode == 0, done.stderr + done.stdout


def test_a_case_that_is_wrong_is_found(rules: Path) -> None:
    """The test above can fail: an alert that is expected and does not fire."""
    wrong = as_test(Case("PenstockGrowthDidNotHelp", (), 2, FIRES))
    file = rules.with_name("test.yaml")
    file.write_text(yaml.safe_dump({"rule_files": [rules.name], "tests": [wrong]}))
    assert promtool("test", "rules", file).returncode != 0


def test_annotations_can_be_written() -> None:
    """Promtool accepts the file as it is delivered, templates included."""
    file = ROOT / "deploy/prometheus/penstock.rules.yaml"
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", file)
    assert done.returncode == 0, done.stderr


def test_every_alert_has_a_runbook() -> None:
    """A section of the troubleshooting page, which its annotation names."""
    sections = anchors(ROOT / RUNBOOKS)
    for one in ALERTS:
        assert one.rule["annotations"]["runbook_url"] == f"{RUNBOOKS}#{one.anchor}"
        assert one.anchor in sections


def test_every_expression_of_the_dashboard_is_one(tmp_path: Path) -> None:
    """Each is a recording rule that promtool accepts."""
    recorded = [
        {"record": f"check:expression:{number}", "expr": text}
        for number, text in enumerate(expressions())
    ]
    assert len(recorded) > 40
    file = tmp_path / "recorded.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]}))
    done = promtool("check", "rules", file)
    assert done.returncode == 0, done.stderr + done.stdout


def test_dashboard_and_rules_name_only_metrics_and_labels_that_exist() -> None:
    """Each name is a definition's, and what is grouped by is one of its labels."""
    names = {metric.name: metric for metric in METRICS}
    names |= {f"{m.name}_bucket": m for m in METRICS if m.kind is Kind.HISTOGRAM}
    for text in [*expressions(), *(one.expression for one in ALERTS)]:
        found = re.findall(r"\b(?:penstock|kafka)_\w+", text)
        assert found, text
        assert set(found) <= set(names), text
        known = {label for name in found for label in ("group", "le", *names[name].labels)}
        for labels in re.findall(r"(?:by|on) \(([^)]*)\)", text):
            assert {one.strip() for one in labels.split(",")} <= known, text


def test_the_dashboard_is_whole() -> None:
    """Panels have different numbers and do not lie on one another; it is plain JSON."""
    made = dashboard()
    assert json.loads(json.dumps(made)) == made
    panels = made["panels"]
    assert len({one["id"] for one in panels}) == len(panels)
    places = [tuple(one["gridPos"][key] for key in ("x", "y")) for one in panels]
    assert len(set(places)) == len(places)
    for one in panels:
        assert one["gridPos"]["x"] + one["gridPos"]["w"] <= 24
        if one["type"] != "row":
            assert one["targets"]
            assert one["fieldConfig"]["defaults"]["unit"]
