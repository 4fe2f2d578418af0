"""Which files are generated, wholly or in a section, and from what.

A section stands between `<!-- begin: name -->` and `<!-- end: name -->`; the rest of its file is
written by people. Helm's part, which needs a program, is in `manifests.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from documents import ROOT
from documents.alert_rules import rules_yaml
from documents.chart_schema import with_settings
from documents.dashboard import dashboard_json
from documents.decisions import decisions_table
from documents.hostile_corpus import hostile_corpus_table
from documents.kafka_rights import as_markdown
from documents.metrics_page import alerts_table, metrics_tables
from kit.controller.planted_bugs import BUGS
from penstock.controller.core.transitions import drawn
from penstock.messages.schemas import schema_texts
from penstock.packing import ALGORITHMS
from penstock.settings.reference import options_markdown, reference_yaml
from penstock.settings.sections.kafka import CLIENT_PROPERTIES_ALLOWED

# The tests know which detector must catch which planted bug: they are asked, not repeated here.
from simulation.test_planted_bugs import CAUGHT_BY

SCHEMAS = "docs/development/messages"
CHART_SCHEMA = "deploy/helm/penstock/values.schema.json"


@dataclass(frozen=True, slots=True)
class Generated:
    """A file that is generated; `text` gives the whole file as it should be."""

    path: str
    text: Callable[[], str]


def section(path: str, name: str, made: Callable[[], str]) -> Generated:
    """The file as it stands, with that section made again."""

    def text() -> str:
        whole = (ROOT / path).read_text(encoding="utf-8")
        begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->"
        before, found_begin, rest = whole.partition(begin)
        _, found_end, after = rest.partition(end)
        if not (found_begin and found_end):
            raise ValueError(f"{path} has no section {name}")
        return before + begin + made().rstrip("\n") + "\n" + end + after

    return Generated(path, text)


def algorithms_table() -> str:
    rows = [f"| {algorithm.name} | {algorithm.sentence} |" for algorithm in ALGORITHMS]
    return "\n".join(["| algorithm | when to use it |", "|---|---|", *rows])


def planted_bugs_table() -> str:
    rows = [
        f"| {bug.name} | {bug.explanation} | {', '.join(CAUGHT_BY[bug.name])} |" for bug in BUGS
    ]
    head = ["| planted bug | what it does | caught by |", "| --- | --- | --- |"]
    return "\n".join([*head, *rows])


def kafka_properties() -> str:
    return ", ".join(f"`{name}`" for name in sorted(CLIENT_PROPERTIES_ALLOWED)) + "."


def states_picture() -> str:
    return "```mermaid\n" + drawn() + "```"


def chart_schema() -> str:
    return with_settings((ROOT / CHART_SCHEMA).read_text(encoding="utf-8"))


def _schema(name: str) -> Generated:
    return Generated(f"{SCHEMAS}/{name}", lambda: schema_texts()[name])


GENERATED: tuple[Generated, ...] = (
    Generated("docs/options.md", options_markdown),
    Generated("docs/penstock.reference.yaml", reference_yaml),
    Generated(CHART_SCHEMA, chart_schema),
    Generated("deploy/prometheus/penstock.rules.yaml", rules_yaml),
    Generated("deploy/helm/penstock/files/penstock.rules.yaml", rules_yaml),
    Generated("deploy/grafana/penstock.json", dashboard_json),
    section("docs/metrics.md", "metrics", metrics_tables),
    section("docs/metrics.md", "alerts", alerts_table),
    section("docs/sizing.md", "algorithms", algorithms_table),
    section("docs/security.md", "kafka-rights", as_markdown),
    section("docs/your-own-kafka.md", "kafka-properties", kafka_properties),
    section("docs/lake.md", "unusual records", hostile_corpus_table),
    section("docs/development/decisions/README.md", "records", decisions_table),
    section("docs/development/protocol.md", "transitions", states_picture),
    section("docs/development/invariants.md", "planted bugs", planted_bugs_table),
    *(_schema(name) for name in sorted(schema_texts())),
)
