"""The recommendation as one HTML page with pictures, for people who do not run Kafka. Pure.

It needs no script and no other file; the pictures are SVG that is made here. It follows the
reader's choice of light or dark.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape

from penstock.cli.recommendation import Recommendation
from penstock.cli.svg_charts import Line, bar_chart, line_chart
from penstock.controller.core.settings import ControllerSettings
from penstock.model.sentences import counted, duration_text, speed_text

_STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1b2733;--soft:#5a6875;--rule:#d8dfe5;
--a:#0b6e4f;--b:#b3541e;--c:#3465a4;--d:#8a5a9e;--e:#8a7a00;--warn:#b00020}
@media (prefers-color-scheme:dark){:root{--paper:#12181d;--ink:#e7edf2;--soft:#9fb0bd;
--rule:#33414c;--a:#4cc79a;--b:#f0a268;--c:#8ab4f0;--d:#cfa4e0;--e:#d8c95a;--warn:#ff8a95}}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;
background:var(--paper);color:var(--ink)}
h1{font-size:1.7rem}h2{font-size:1.2rem;margin-top:2.2rem}
.note,figcaption{color:var(--soft);font-size:.9rem}figure{margin:1rem 0;
overflow-x:auto}svg{width:100%;min-width:44rem;height:auto}
svg text{fill:var(--soft);font:12px system-ui,sans-serif}
.grid{stroke:var(--rule);stroke-width:1}.line{fill:none;stroke-width:2}
.a{stroke:var(--a)}.b{stroke:var(--b)}.c{stroke:var(--c);stroke-dasharray:6 4}
.d{stroke:var(--d);stroke-dasharray:2 4}.e{stroke:var(--e)}.bar{fill:var(--a)}.hot{fill:var(--warn)}
.limit{stroke:var(--warn);stroke-width:1.5;stroke-dasharray:5 4}
.key{display:inline-block;width:1.2rem;border-top:3px solid;margin:0 .4rem 0 1rem;
vertical-align:middle}.key.a{color:var(--a)}.key.b{color:var(--b)}.key.c{color:var(--c)}
.key.d{color:var(--d)}.key.e{color:var(--e)}table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:.35rem .6rem;border-bottom:1px solid var(--rule);vertical-align:top}
td:first-child{overflow-wrap:anywhere}
.facts{display:flex;flex-wrap:wrap;gap:1rem;padding:0;list-style:none}
.facts li{border:1px solid var(--rule);border-radius:.5rem;padding:.7rem 1rem;flex:1 1 11rem}
.facts b{display:block;font-size:1.5rem}code{font-size:.92em}
"""

_SPREAD = (
    "Give the topic more partitions, or choose a key that spreads the records (one busy customer "
    "or device as the key is the usual cause)."
)


def report_html(found: Recommendation, chosen: ControllerSettings, at: datetime) -> str:
    """The whole page."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    partitions, lasted = counted(found.partitions, "partition"), duration_text(found.watched_s)
    watched = f"Penstock watched {partitions} for {lasted} and changed nothing."
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        f"<title>What this Kafka load needs</title><style>{_STYLE}</style></head><body>"
    )
    body = [
        "<h1>What this Kafka load needs</h1>",
        f'<p class="note">{escape(watched)} Made on {at:%Y-%m-%d at %H:%M} UTC.</p>',
        _facts(found),
        *_over_time(found),
        *_objectives(found),
        *_partitions(found),
        *_settings(found),
        "<h2>All of it in words</h2>",
        *(f"<p>{escape(line)}</p>" for line in found.text(chosen).splitlines()),
    ]
    return head + "\n".join(body) + "</body></html>\n"


def _carried_by_one(found: Recommendation) -> tuple[str, str]:
    """Every other figure rests on it."""
    carried = speed_text(found.capacity_bytes_per_s)
    if found.capacity_is_assumed:
        return carried, "is assumed to be what one consumer carries; every figure here rests on it"
    return carried, f"is what one consumer carries ({found.capacity['source']})"


def _facts(found: Recommendation) -> str:
    saved = 1 - found.consumers_mean / max(1, found.consumers_of_a_plain_group)
    facts = (
        _carried_by_one(found),
        (f"{found.consumers_mean:.3g}", "consumers needed on average"),
        (str(found.consumers_highest), "consumers needed at most"),
        (str(found.consumers_of_a_plain_group), "consumers of a plain group that is as fresh"),
        (f"{max(0.0, saved):.0%}", "fewer consumer-hours than that group"),
        (f"{found.capacity_used:.0%}", "of the consumers' capacity is used"),
    )
    rows = "".join(f"<li><b>{escape(figure)}</b>{escape(what)}</li>" for figure, what in facts)
    return f'<ul class="facts">{rows}</ul>'


def _over_time(found: Recommendation) -> Iterable[str]:
    lines = [Line("a", "needed with the present settings", found.consumers_over_time)]
    for tone, one in zip("be", found.objective_needs[1:], strict=False):
        name = f"needed to be fresh within {duration_text(one.freshness_s)}"
        lines.append(Line(tone, name, one.consumers_over_time))
    points = len(found.consumers_over_time)
    fixed, plain = found.consumers_of_a_fixed_group, found.consumers_of_a_plain_group
    lines += [
        Line("c", "a group of fixed size", (fixed,) * points),
        Line("d", "a plain Kafka consumer group", (plain,) * points),
    ]
    yield "<h2>Consumers over time</h2>"
    yield _figure(line_chart(lines, found.watched_s, "consumers", "{:.0f}".format), lines)
    written = [Line("a", "written", found.written_over_time_bytes_per_s)]
    yield "<h2>What is written over time</h2>"
    yield _figure(line_chart(written, found.watched_s, "bytes a second", speed_text), written)


def _figure(drawing: str, lines: Sequence[Line]) -> str:
    keys = "".join(f'<span class="key {one.tone}"></span>{escape(one.name)}' for one in lines)
    return f"<figure>{drawing}<figcaption>{keys}</figcaption></figure>"


def _objectives(found: Recommendation) -> Iterable[str]:
    if not found.objective_needs:
        return
    yield "<h2>What freshness costs</h2>"
    yield (
        "<p>Freshness is how old a record may be when it is visible in the lake "
        "(<code>objective.freshness</code>).</p>"
    )
    rows = [
        (
            duration_text(one.freshness_s),
            f"{one.consumers_mean:.3g}",
            str(one.consumers_highest),
            str(one.spare_consumers),
            f"{one.target_utilisation:.0%}",
        )
        for one in sorted(found.objective_needs, key=lambda one: one.freshness_s)
    ]
    names = ("fresh within", "consumers on average", "at most", "spares", "filled to")
    yield _table(names, rows)
    if found.objective_needs[0].rise is None:
        yield (
            '<p class="note">This watch was too short to see how far the load rises, so consumers '
            "are filled carefully. Watch for more than ten minutes.</p>"
        )


def _partitions(found: Recommendation) -> Iterable[str]:
    yield "<h2>The fastest partitions</h2>"
    carried = found.fastest_capacity_bytes_per_s
    title = "the fastest of them, and what one consumer carries of the topic of each"
    yield f"<figure>{bar_chart(found.fastest_bytes_per_s, carried, title, speed_text)}</figure>"
    known = [one for one in found.hot_partitions if not one.capacity_is_assumed]
    perhaps = [one for one in found.hot_partitions if one.capacity_is_assumed]
    if known:
        names = ", ".join(one.partition for one in known)
        yield (
            f"<p><b>No consumer can carry {escape(names)}.</b> More consumers do not help: a "
            f"partition has one reader. {_SPREAD} Until then these partitions fall behind while "
            "they are written that fast.</p>"
        )
    for one in perhaps:
        limit, verb = speed_text(one.capacity_bytes_per_s), "may be more than one consumer carries"
        yield (
            f"<p><b>{escape(one.partition)} {verb}, if one carries {escape(limit)}</b>, which is "
            f"assumed. Then more consumers would not help: a partition has one reader. {_SPREAD}"
            "</p>"
        )
    if not found.hot_partitions:
        yield f"<p>{escape(_each_carried(found))}</p>"


def _each_carried(found: Recommendation) -> str:
    limits = sorted({speed_text(one) for one in found.fastest_capacity_bytes_per_s.values()})
    carried = limits[0] if len(limits) == 1 else "as the line in each bar shows"
    if found.capacity_is_assumed:
        return (
            f"If one consumer carries what is assumed ({carried}), it carries each of them. If it "
            "carries less, one of them may be more than one consumer carries."
        )
    return f"One consumer carries each of them ({carried})."


def _settings(found: Recommendation) -> Iterable[str]:
    yield "<h2>Settings to start with</h2>"
    rows = [(name, str(value), found.reasons[name]) for name, value in found.settings.items()]
    if not rows:
        yield "<p>None: the defaults are a good start.</p>"
        return
    yield _table(("setting", "value", "why"), rows)


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
