"""The tables of docs/metrics.md: every metric, and every alert, from their definitions."""

from documents.alert_rules import ALERTS
from penstock.metrics import Process
from penstock.metrics.catalogue import METRICS

_HEAD = [
    "| metric | kind and unit | labels beside `group` | meaning |",
    "| --- | --- | --- | --- |",
]


def metrics_tables() -> str:
    lines: list[str] = []
    for process in Process:
        lines += [f"### {process.value.capitalize()}", "", *_HEAD]
        for metric in METRICS:
            if metric.process is not process:
                continue
            labels = ", ".join(f"`{name}`" for name in metric.labels) or "none"
            if metric.group_label != "group":
                labels += f" (and `{metric.group_label}` in place of `group`)"
            kind = f"{metric.kind.value}, {metric.unit}"
            lines.append(f"| `{metric.name}` | {kind} | {labels} | {metric.sentence} |")
        lines.append("")
    return "\n".join(lines).rstrip("\n")


def alerts_table() -> str:
    lines = ["| alert | severity | when |", "| --- | --- | --- |"]
    for one in ALERTS:
        link = f"[`{one.name}`](troubleshooting.md#{one.anchor})"
        lines.append(f"| {link} | {one.severity} | {one.when} |")
    return "\n".join(lines)
