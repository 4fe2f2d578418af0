// The time lines of the group: speed, consumers, backlog, and what happened.

import { countText, durationText, speedText } from "./format.js";
import { byId, make, optionsOf, setAttribute } from "./elements.js";
import { EventChart } from "./event_chart.js";
import { TimeChart } from "./time_chart.js";
import { TimeView } from "./time_view.js";

const SPANS = [["5 min", 300_000], ["15 min", 900_000], ["1 h", 3_600_000], ["6 h", 21_600_000], ["all", null]];
const LAYERS_MAX = 9;
const POINTS = 300;
const SETTLE_MS = 250;
const BRIDGED_STEPS = 3;
const BRIDGED_MS = 8_000;
const FIGURES = [
  "written_bytes_per_s", "carried_bytes_per_s", "behind_records", "behind_s", "consumers_running", "consumers_needed", "consumers_fewest",
  "freshness_s", "freshness_at_least_s",
];
const EVENT_KINDS = new Set(["move", "start", "end", "fault"]);

/** The largest layers, and one for all others. */
function layersOf(rows, nameOf, times) {
  const weight = (row) => row.bytes_per_s.reduce((sum, value) => sum + (value ?? 0), 0);
  const named = rows.filter((row) => nameOf(row) !== null);
  const ordered = [...named].sort((a, b) => weight(b) - weight(a));
  const kept = new Set(ordered.slice(0, LAYERS_MAX));
  const layers = named.filter((row) => kept.has(row))
    .map((row, place) => ({ name: nameOf(row), values: row.bytes_per_s, tone: place % 10, isArea: true }));
  const others = rows.filter((row) => !kept.has(row));
  if (others.length) {
    const values = times.map((_, place) => others.reduce((sum, row) => sum + (row.bytes_per_s[place] ?? 0), 0));
    layers.push({ name: "all others", values, tone: 7, isArea: true });
  }
  return layers;
}

/**
 * The answer with short gaps closed by the value before them. A reading that came a moment late leaves a
 * step without a sample, and that is no news; a longer gap stays one.
 */
function bridged(answer) {
  const known = answer.written_bytes_per_s.map((value) => value !== null);
  // A large group is read every five seconds only.
  const most = Math.max(BRIDGED_STEPS, Math.floor(BRIDGED_MS / answer.step_ms));
  const places = [];
  for (let begin = 1; begin < known.length; begin += 1) {
    if (known[begin] || !known[begin - 1]) continue;
    let end = begin;
    while (end < known.length && !known[end]) end += 1;
    if (end - begin <= most) for (let place = begin; place < end; place += 1) places.push(place);
  }
  const close = (values) => {
    const closed = [...values];
    for (const place of places) closed[place] ??= closed[place - 1];
    return closed;
  };
  const rows = (all) => all.map((row) => ({ ...row, bytes_per_s: close(row.bytes_per_s) }));
  const figures = Object.fromEntries(FIGURES.map((name) => [name, close(answer[name])]));
  return { ...answer, ...figures, by_topic: rows(answer.by_topic), by_consumer: rows(answer.by_consumer) };
}

export class TimeLines {
  /** `wanted()` is called when another stretch or topic should be asked for. */
  constructor(tones, wanted) {
    this.view = new TimeView();
    this.tones = tones;
    this.wanted = wanted;
    const host = byId("charts");
    this.speed = new TimeChart(host, this.view, { title: "Written", valueText: speedText, height: 170 });
    const tenths = (value) => String(Math.round(value * 10) / 10);
    this.consumers = new TimeChart(host, this.view, { title: "Consumers", valueText: tenths, height: 170, isWhole: true });
    this.backlog = new TimeChart(host, this.view, { title: "Behind and carried", valueText: durationText, height: 130 });
    this.events = new EventChart(host, this.view, { title: "What happened", empty: "Nothing has happened in this stretch." });
    this.makeTools();
    this.view.onChange(() => {
      this.markSpan();
      this.askSoon();
    });
    this.view.showNewest(900_000);
  }

  /** For a simulation, which has none. */
  leaveOutBacklog() {
    this.backlog.area.closest("figure").hidden = true;
  }

  makeTools() {
    const chosen = (label, pairs) => make("select", { "aria-label": label }, optionsOf(pairs));
    this.by = chosen("Stack by", [["consumer", "by consumer"], ["topic", "by topic"]]);
    this.topic = chosen("Topic", [["", "all topics"]]);
    this.unit = chosen("Shown", [["seconds", "behind, as time"], ["freshness", "freshness of the lake"], ["records", "behind, in records"], ["carried", "written and carried"]]);
    this.speed.tools.append(this.topic, this.by);
    this.backlog.tools.append(this.unit);
    this.topic.addEventListener("input", () => this.wanted());
    for (const control of [this.by, this.unit]) control.addEventListener("input", () => this.answer && this.show(this.answer));
    this.buttons = SPANS.map(([name, span]) => {
      const press = () => {
        this.view.showNewest(span);
        this.wanted();
      };
      return make("button", { type: "button", "aria-pressed": "false", on: { click: press } }, name);
    });
    byId("time-tools").append(...this.buttons,
      make("button", { type: "button", "aria-label": "Zoom in", on: { click: () => this.view.zoom(0.5) } }, "+"),
      make("button", { type: "button", "aria-label": "Zoom out", on: { click: () => this.view.zoom(2) } }, "−"));
  }

  markSpan() {
    this.buttons.forEach((button, place) =>
      setAttribute(button, "aria-pressed", this.view.endMs === null && this.view.spanMs === SPANS[place][1] ? "true" : "false"));
  }

  /** Another stretch needs other points: they are asked for when it rests for a moment. */
  askSoon() {
    const stretch = `${this.view.spanMs} ${this.view.endMs}`;
    if (stretch === this.stretch) return;
    this.stretch = stretch;
    clearTimeout(this.asking);
    this.asking = setTimeout(() => this.answer && this.wanted(), SETTLE_MS);
  }

  learnTopics(topics) {
    const shape = topics.join("\u0000");
    if (shape === this.topicShape) return;
    this.topicShape = shape;
    const chosen = this.topic.value;
    this.topic.replaceChildren(...optionsOf([["", "all topics"], ...topics.map((topic) => [topic, topic])]));
    this.topic.value = topics.includes(chosen) ? chosen : "";
  }

  /** What to ask the server for, so that what is visible has enough points. */
  query() {
    const { spanMs, endMs } = this.view;
    const { fromMs, toMs } = this.view.range();
    const follows = endMs === null;
    const first = this.answer?.begin_unix_ms ?? null;
    const from = spanMs === null ? first : follows && !this.answer ? null : Math.round(fromMs);
    return { from, to: follows ? null : Math.round(toMs), points: POINTS, topic: this.topic.value || null };
  }

  show(given) {
    this.answer = given;
    const answer = bridged(given);
    const times = answer.at_unix_ms;
    const topic = this.topic.value;
    // Where its consumers cannot be told apart, a topic is one layer.
    const byTopic = topic ? !answer.by_consumer.length : this.by.value === "topic";
    const rows = byTopic ? answer.by_topic.filter((row) => !topic || row.topic === topic) : answer.by_consumer;
    const layers = layersOf(rows, (row) => (byTopic ? row.topic : row.consumer === null ? null : `consumer ${row.consumer}`), times);
    if (byTopic) for (const layer of layers) if (layer.name !== "all others") layer.tone = this.tones.of(layer.name);
    this.speed.setData(times, layers, { isStacked: true });
    this.consumers.setData(times, [
      { name: "running", values: answer.consumers_running, tone: "accent", isStep: true, width: 2.5 },
      { name: "needed", values: answer.consumers_needed, tone: "warn", isStep: true, dash: [6, 4] },
      { name: "fewest possible", values: answer.consumers_fewest, tone: "good", isStep: true, dash: [2, 3] },
    ]);
    this.showBacklog(times, answer);
    this.events.setEvents((answer.marks ?? []).filter((one) => EVENT_KINDS.has(one.kind))
      .map((one) => ({ atMs: one.at_unix_ms, kind: one.kind, text: one.sentence })));
    const begin = answer.begin_unix_ms ?? times[0];
    // What is known reaches further than what is shown: one can zoom out again.
    if (times.length) this.view.setExtent(Math.min(begin, times[0]), Math.max(answer.newest_unix_ms, times.at(-1)));
  }

  showBacklog(times, answer) {
    const shown = this.unit.value;
    this.backlog.options.valueText = { seconds: durationText, freshness: durationText, records: countText, carried: speedText }[shown];
    this.backlog.options.isTime = shown === "seconds" || shown === "freshness";
    if (shown === "carried") {
      this.backlog.setData(times, [
        { name: "written", values: answer.written_bytes_per_s, tone: "accent" },
        { name: "carried", values: answer.carried_bytes_per_s, tone: "good", dash: [6, 3] },
      ]);
    } else if (shown === "freshness") {
      this.backlog.setData(times, [
        { name: "freshness", values: answer.freshness_s, tone: "accent" },
        { name: "at least", values: answer.freshness_at_least_s, tone: "warn", dash: [6, 3] },
      ]);
    } else {
      const values = shown === "records" ? answer.behind_records : answer.behind_s;
      this.backlog.setData(times, [{ name: "behind", values, tone: "warn" }]);
    }
  }
}
