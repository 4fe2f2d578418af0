"""The Grafana dashboard in deploy/grafana, made from the definitions of the metrics.

Written as plain values, without Grafana's library: a panel is a title, a unit, and expressions with
their legends. Every expression is checked by promtool in the tests.
"""

import json
from dataclasses import dataclass
from typing import Any

from penstock.metrics import Metric, of_consumer, of_monitor
from penstock.metrics import of_controller as of

WIDTH, PANEL_WIDTH, PANEL_HEIGHT = 24, 12, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Panel:
    """`queries` are pairs of an expression and its legend."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    description: str = ""
    is_stacked: bool = False


def _of(metric: Metric, **labels: str) -> str:
    more = "".join(f',{name}="{value}"' for name, value in labels.items())
    return f'{metric.name}{{group=~"$group"{more}}}'


def _max(metric: Metric, **labels: str) -> str:
    """Of a figure that the leading controller alone tells: whichever process that is."""
    return f"max by (group) ({_of(metric, **labels)})"


def _rate(metric: Metric, by: str) -> str:
    return f"sum by ({by}) (rate({_of(metric)}[$__rate_interval]))"


def _increase(metric: Metric, by: str) -> str:
    return f"sum by ({by}) (increase({_of(metric)}[$__rate_interval]))"


def _quantile(share: float, metric: Metric, by: str) -> str:
    series = _of(metric).replace(metric.name, f"{metric.name}_bucket")
    return f"histogram_quantile({share}, sum by (le, {by}) (rate({series}[$__rate_interval])))"


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "The group at a glance",
        (
            Panel(
                "Freshness by topic",
                "s",
                (
                    (f"max by (topic) ({_of(of.TOPIC_FRESHNESS)})", "{{topic}}"),
                    (_max(of.FRESHNESS_OBJECTIVE), "objective"),
                ),
                "How old the newest state of each topic is that the lake has whole.",
            ),
            Panel(
                "Consumers",
                "short",
                (
                    (_max(of.WANTED), "wanted"),
                    (_max(of.READY), "ready"),
                    (_max(of.STARTING), "starting"),
                    (_max(of.ENDING), "ending"),
                    (_max(of.MAXIMUM), "maximum"),
                ),
            ),
            Panel(
                "Written and carried",
                "Bps",
                (
                    (_max(of.GROUP_WRITE_SPEED), "written, bytes of the log"),
                    (_rate(of_consumer.BYTES, "group"), "carried, bytes of records"),
                ),
                "Bytes of the log are compressed, bytes of records are not.",
            ),
            Panel(
                "What is not well",
                "short",
                ((f"max by (condition) ({_of(of.CONDITION)}) > 0", "{{condition}}"),),
                is_stacked=True,
            ),
        ),
    ),
    (
        "Load and packing",
        (
            Panel(
                "Write speed by topic",
                "Bps",
                ((f"max by (topic) ({_of(of_monitor.TOPIC_WRITE_SPEED)})", "{{topic}}"),),
                is_stacked=True,
            ),
            Panel(
                "Utilisation of consumers",
                "percentunit",
                ((f"max by (consumer) ({_of(of.UTILISATION)})", "consumer {{consumer}}"),),
            ),
            Panel(
                "Assigned speed and capacity",
                "Bps",
                (
                    (f"sum by (group) ({_of(of.ASSIGNED)})", "assigned"),
                    (f"sum by (group) ({_of(of.CAPACITY)})", "capacity"),
                ),
            ),
            Panel(
                "What one consumer carries, by topic, and how that is known",
                "Bps",
                (
                    (
                        f"max by (topic, source) ({_of(of.TOPIC_CAPACITY)})",
                        "{{topic}} ({{source}})",
                    ),
                ),
            ),
            Panel(
                "Partitions by state",
                "short",
                ((f"max by (state) ({_of(of.PARTITIONS)})", "{{state}}"),),
                is_stacked=True,
            ),
        ),
    ),
    (
        "Backlog",
        (
            Panel(
                "Backlog in seconds, by topic",
                "s",
                ((f"max by (topic) ({_of(of.TOPIC_BACKLOG_SECONDS)})", "{{topic}}"),),
            ),
            Panel(
                "Backlog in records, by topic",
                "short",
                ((f"max by (topic) ({_of(of.TOPIC_BACKLOG)})", "{{topic}}"),),
                is_stacked=True,
            ),
            Panel(
                "The ten partitions with the largest backlog",
                "short",
                ((f"topk(10, {_of(of.PARTITION_BACKLOG)})", "{{topic}}-{{partition}}"),),
            ),
            Panel(
                "Stopped partitions",
                "short",
                ((f"sum by (topic, reason) ({_of(of.STOPPED)})", "{{topic}}: {{reason}}"),),
                is_stacked=True,
            ),
        ),
    ),
    (
        "Decisions and moves",
        (
            Panel("Decisions", "short", ((_increase(of.DECISIONS, "code"), "{{code}}"),)),
            Panel(
                "Plans and moves",
                "short",
                (
                    (_increase(of.PLANS, "code"), "plan: {{code}}"),
                    (_increase(of.MOVES, "group"), "moved partitions"),
                    (_max(of.OPEN_MOVES), "still moving"),
                ),
            ),
            Panel(
                "Hand-over of a partition",
                "s",
                (
                    (_quantile(0.5, of.HANDOVER_SECONDS, "group"), "half"),
                    (_quantile(0.95, of.HANDOVER_SECONDS, "group"), "95 %"),
                ),
            ),
            Panel(
                "Starts, ends and fences of consumers",
                "short",
                (
                    (_increase(of.STARTS, "group"), "started"),
                    (_increase(of.ENDS, "how"), "{{how}}"),
                    (_increase(of.FENCES, "reason"), "fenced: {{reason}}"),
                ),
            ),
        ),
    ),
    (
        "Batches",
        (
            Panel(
                "Stages of a batch, 95 %",
                "s",
                ((_quantile(0.95, of_consumer.STAGE_SECONDS, "stage"), "{{stage}}"),),
            ),
            Panel(
                "Whole batches",
                "s",
                (
                    (_quantile(0.5, of_consumer.BATCH_SECONDS, "group"), "half"),
                    (_quantile(0.95, of_consumer.BATCH_SECONDS, "group"), "95 %"),
                ),
            ),
            Panel("Batches", "ops", ((_rate(of_consumer.BATCHES, "outcome"), "{{outcome}}"),)),
            Panel(
                "Records",
                "ops",
                ((_rate(of_consumer.RECORDS, "consumer"), "consumer {{consumer}}"),),
            ),
            Panel(
                "Retries, refusals and dead letters",
                "short",
                (
                    (_increase(of_consumer.RETRIES, "group"), "read again"),
                    (_increase(of_consumer.REFUSED, "group"), "refused by the ledger"),
                    (_increase(of_consumer.DEAD_LETTERS, "group"), "dead letters"),
                    (_increase(of_consumer.FAILED, "reason"), "given up: {{reason}}"),
                    (_increase(of_consumer.SESSIONS_LOST, "group"), "Spark sessions lost"),
                ),
            ),
        ),
    ),
    (
        "Tables",
        (
            Panel(
                "Commits and conflicts",
                "ops",
                (
                    (_rate(of_consumer.COMMITS, "table"), "{{table}}"),
                    (_rate(of_consumer.CONFLICTS, "table"), "{{table}}: conflicts"),
                ),
            ),
            Panel(
                "Files",
                "short",
                ((f"max by (table) ({_of(of_consumer.TABLE_FILES)})", "{{table}}"),),
            ),
            Panel(
                "Log entries since the checkpoint",
                "short",
                ((f"max by (table) ({_of(of_consumer.TABLE_LOG_ENTRIES)})", "{{table}}"),),
            ),
            Panel(
                "Compaction and upkeep",
                "short",
                (
                    (_increase(of_consumer.FILES_JOINED, "table"), "{{table}}: files replaced"),
                    (_increase(of_consumer.FILES_VACUUMED, "table"), "{{table}}: files removed"),
                    (_increase(of_consumer.UPKEEPS, "outcome"), "upkeep {{outcome}}"),
                ),
            ),
        ),
    ),
    (
        "The processes themselves",
        (
            Panel(
                "Controller",
                "s",
                (
                    (_max(of.SILENCE), "since its last step"),
                    (_max(of.MEASUREMENT_AGE), "age of the measurement"),
                    (_quantile(0.99, of.STEP_SECONDS, "group"), "99 % of steps"),
                ),
            ),
            Panel(
                "Who leads",
                "short",
                (
                    (_of(of.LEADING), "{{instance}}"),
                    (_max(of.EPOCH), "epoch"),
                ),
            ),
            Panel(
                "Monitor",
                "s",
                (
                    (_quantile(0.95, of_monitor.ROUND_SECONDS, "group"), "95 % of rounds"),
                    (f"max by (group) ({_of(of_monitor.SAMPLE_AGE)})", "age of the newest answer"),
                ),
            ),
            Panel(
                "Since each consumer was heard",
                "s",
                ((f"max by (consumer) ({_of(of.REPORT_AGE)})", "consumer {{consumer}}"),),
            ),
        ),
    ),
)


def expressions() -> list[str]:
    """Every expression of the dashboard, with its variables filled in."""
    found = [query for _, panels in ROWS for panel in panels for query, _ in panel.queries]
    return [one.replace("$group", ".*").replace("$__rate_interval", "5m") for one in found]


def _panel(panel: Panel, number: int, x: int, y: int) -> dict[str, Any]:
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": {"h": PANEL_HEIGHT, "w": PANEL_WIDTH, "x": x, "y": y},
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "custom": {
                    "fillOpacity": 20 if panel.is_stacked else 0,
                    "stacking": {"mode": "normal" if panel.is_stacked else "none"},
                    "spanNulls": False,
                },
            },
            "overrides": [],
        },
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _SOURCE,
                "expr": expression,
                "legendFormat": legend,
            }
            for index, (expression, legend) in enumerate(panel.queries)
        ],
    }


def _row(title: str, number: int, y: int) -> dict[str, Any]:
    place = {"h": 1, "w": WIDTH, "x": 0, "y": y}
    return {"id": number, "type": "row", "title": title, "gridPos": place, "panels": []}


def dashboard() -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    y = 0
    for title, of_row in ROWS:
        panels.append(_row(title, len(panels) + 1, y))
        y += 1
        for index, panel in enumerate(of_row):
            x = PANEL_WIDTH * (index % 2)
            panels.append(_panel(panel, len(panels) + 1, x, y + PANEL_HEIGHT * (index // 2)))
        y += PANEL_HEIGHT * ((len(of_row) + 1) // 2)
    groups = f"label_values({of.LEADING.name}, group)"
    return {
        "uid": "penstock",
        "title": "Penstock",
        "tags": ["penstock", "kafka"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Data source",
                    "type": "datasource",
                    "query": "prometheus",
                },
                {
                    "name": "group",
                    "label": "Group",
                    "type": "query",
                    "datasource": _SOURCE,
                    "query": {"query": groups, "refId": "groups"},
                    "definition": groups,
                    "refresh": 2,
                    "includeAll": True,
                    "multi": True,
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "annotations": {"list": []},
        "panels": panels,
    }


def dashboard_json() -> str:
    return json.dumps(dashboard(), indent=2) + "\n"
