"""Writes the answers of a made-up group: into `recorded`, and as examples into docs/api.md.

Run it from the checkout: `PYTHONPATH=src:tests .venv/bin/python -m kit.page.record`
"""

import json
import re
from pathlib import Path
from typing import Any

from kit.page.made_up_group import BEGIN_UNIX_MS, MOVE_AT_S, TOPICS, MadeUpGroup
from penstock.controller.core.dry_run import dry_run, priced_of_question, problem_of_question
from penstock.page.core.answers import Answers, HistoryQuery, TimelineQuery
from penstock.page.core.listing import LIMIT_MAX, PartitionQuery
from penstock.page.core.tables import CompactionDone, LogLength, TableHealth, TablesRead
from penstock.page.core.watch import Watch

RECORDED = Path(__file__).parent / "recorded"
DOCUMENT = Path(__file__).parents[3] / "docs" / "api.md"
_EXAMPLE = re.compile(r"<!-- answer: (?P<name>[\w-]+) -->\n```json\n.*?\n?```", re.DOTALL)
GROUP = "shop"
# A few seconds after the plan: partitions are on their way.
SECONDS = MOVE_AT_S + 9
AGE_S = 0.6
LINE_MAX = 120


def as_read(snapshot: dict[str, Any]) -> dict[str, Any]:
    """The snapshot as `read_status` gives it, a moment after it was written."""
    return {
        **snapshot,
        "history": [_aged(one) for one in snapshot["history"]],
        "age_s": AGE_S,
        "is_stale": False,
        "silence": None,
        "source": "file",
        "starts_now": None,
        "stops_now": None,
    }


def _aged(decision: dict[str, Any]) -> dict[str, Any]:
    passed_ms = round(AGE_S * 1000)
    ages = {name: decision[name] + passed_ms for name in ("age_ms", "first_age_ms")}
    return {**decision, **ages}


def watched(group: MadeUpGroup, seconds: int) -> Watch:
    watch = Watch()
    for second in range(seconds):
        snapshot = as_read(group.step())
        if second % 10 == 0:
            asked = snapshot["question"]
            problem, priced = problem_of_question(asked), priced_of_question(asked)
            watch.take_plan(dry_run("CHAIN", problem, priced=priced), snapshot["at_unix_ms"])
        watch.add(snapshot)
    return watch


def made_up_tables(read_unix_ms: int = BEGIN_UNIX_MS + 300_000, name: str = "") -> TablesRead:
    """One for each topic; the last was never compacted. With `name`, the first is called so."""
    sizes = tuple(1_000_000 + 37_000 * (number % 11) for number in range(40))
    healths = tuple(
        TableHealth(
            table=topic if place or not name else name,
            version=812 + 10 * place,
            file_sizes=sizes * (1 if place else 8),
            records=1_000_000 + place,
            newest_file_unix_ms=read_unix_ms - 1_000,
            checkpoint_version=800,
            file_size_target_bytes=128 * 1024**2,
            log=LogLength(112, 750, read_unix_ms - 60_000),
            compaction=None
            if place == len(TOPICS) - 1
            else CompactionDone(9, 540, 600_000_000, 4_200, read_unix_ms - 10_000),
        )
        for place, topic in enumerate(TOPICS)
    )
    return TablesRead(read_unix_ms, healths)


def recorded_answers() -> dict[str, dict[str, Any]]:
    """By file name: the route without its version, dashes for slashes."""
    watch = watched(MadeUpGroup(), SECONDS)
    view = watch.view
    if view is None:
        raise AssertionError("it was given snapshots")
    ask = Answers(watch, view, GROUP)
    moving = next(iter(view.moves)).rpartition("-")
    found = {
        "status": ask.status(),
        "topics": ask.topics(),
        "consumers": ask.consumers(with_partitions=False),
        "consumers-with-partitions": ask.consumers(with_partitions=True),
        "consumer-3": ask.consumer(3),
        "partitions": ask.partitions(PartitionQuery(limit=LIMIT_MAX)),
        "partition-moving": ask.partition(moving[0], int(moving[2])),
        "partition-stopped": ask.partition("stock.changes", 14),
        "plan": ask.plan(with_partitions=False),
        "plan-with-partitions": ask.plan(with_partitions=True),
        "history": ask.history(HistoryQuery()),
        "tables": made_up_tables().answer(),
        "timeline": ask.timeline(TimelineQuery(points=100)),
        "event-summary": {
            "snapshot": ask.status()["snapshot"],
            "status": watch.summary(),
            "sample": watch.newest_sample(),
        },
    }
    found["run"] = {
        "format": "penstock-run",
        "version": 1,
        "title": "A made-up group",
        "made_unix_ms": view.at_unix_ms,
        "answers": {
            "/v1/timeline": found["timeline"],
            "/v1/history": found["history"],
            "/v1/partitions": found["partitions"],
            "/v1/topics": found["topics"],
            "/v1/plan": found["plan-with-partitions"],
            "/v1/tables": found["tables"],
            "/v1/partitions/stock.changes/14": found["partition-stopped"],
            "/v1/consumers/3": found["consumer-3"],
        },
        "frames": [
            {
                "at_unix_ms": view.at_unix_ms,
                "answers": {
                    "/v1/status": found["status"],
                    "/v1/consumers?with=partitions": found["consumers-with-partitions"],
                },
            }
        ],
        "incidents": [{"at_unix_ms": BEGIN_UNIX_MS + 114_000, "sentence": "consumer 3 killed"}],
        "results": {"records produced": "1,000,000", "lost": "0"},
    }
    return {name: answer for name, answer in found.items() if answer is not None}


def shortened(answer: Any) -> Any:
    """Lists with their first member or two, for people."""
    if isinstance(answer, dict):
        return {name: shortened(one) for name, one in answer.items()}
    if isinstance(answer, list):
        return [
            shortened(one)
            for one in answer[: 1 if any(isinstance(one, dict) for one in answer) else 2]
        ]
    return round(answer, 3) if isinstance(answer, float) else answer


def laid_out(answer: Any, indent: int = 0) -> str:
    """JSON with what is short on one line."""
    whole = json.dumps(answer, ensure_ascii=False)
    if indent + len(whole) <= LINE_MAX or not isinstance(answer, dict | list):
        return whole
    begin, inner = " " * indent, " " * (indent + 1)
    if isinstance(answer, list):
        rows, (opening, closing) = [laid_out(one, indent + 1) for one in answer], "[]"
    else:
        opening, closing = "{}"
        rows = [f"{json.dumps(name)}: {laid_out(one, indent + 1)}" for name, one in answer.items()]
    lines = [rows[0]]
    for row in rows[1:]:
        is_short = "\n" not in row and len(inner) + len(lines[-1]) + len(row) < LINE_MAX
        if is_short and "\n" not in lines[-1]:
            lines[-1] += f", {row}"
        else:
            lines[-1] += ","
            lines.append(row)
    return f"{opening}\n{inner}" + f"\n{inner}".join(lines) + f"\n{begin}{closing}"


def documented(text: str, answers: dict[str, dict[str, Any]]) -> str:
    """The document with the examples that its marks name, as they are answered now."""

    def example(found: re.Match[str]) -> str:
        lines = laid_out(shortened(answers[found["name"]]))
        return f"<!-- answer: {found['name']} -->\n```json\n{lines}\n```"

    return _EXAMPLE.sub(example, text)


def main() -> None:
    RECORDED.mkdir(exist_ok=True)
    DOCUMENT.write_text(
        documented(DOCUMENT.read_text(encoding="utf-8"), recorded_answers()), encoding="utf-8"
    )
    for name, answer in recorded_answers().items():
        text = json.dumps(answer, ensure_ascii=False).replace(', "', ',\n"') + "\n"
        (RECORDED / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
