// The group: figures at a glance, the packing, the newest decisions and the time lines.

import { countText, counted, sentenceOf, shortenedList } from "./format.js";
import { byId, factList, make, optionsOf, setText } from "./elements.js";
import { showDecisions } from "./decisions.js";
import { showConditions, showDoing, showTiles } from "./glance.js";
import { Overview } from "./overview.js";
import { NO_CONSUMER, Packing } from "./packing.js";
import { TimeLines } from "./timelines.js";

const ROWS_MAX = 40;
const RECENT = 12;
const TOPICS_IN_KEY = 10;
const KEY = [
  ["▲", "hot", "hot"],
  ["!!", "oversize", "oversize"],
  ["▼", "behind", "far behind"],
  ["✕", "stopped", "stopped"],
  ["→", "moving", "moves"],
];
const CONSUMERS_PERIOD_MS = 4_000;
const TIMELINE_PERIOD_MS = 3_000;
const ORDERS = {
  number: ["by number", (a, b) => a.consumer - b.consumer],
  load: ["fullest first", (a, b) => (b.share ?? 0) - (a.share ?? 0)],
  behind: ["most behind first", (a, b) => (b.behind_records ?? 0) - (a.behind_records ?? 0)],
};

/** A consumer's bar in a large group: one part for each topic, until somebody asks for more. */
function byTopic(row) {
  return row.by_topic.map((one) => ({
    isTopic: true, topic: one.topic, partition: one.partitions, load_bytes_per_s: one.load_bytes_per_s, state: "owned", to: null, marks: [],
  }));
}

export class GroupView {
  constructor(source, tones, open) {
    this.source = source;
    this.tones = tones;
    this.page = 0;
    this.asked = { consumers: -Infinity, timeline: -Infinity, history: -Infinity };
    this.overview = new Overview(byId("packing"), (place) => this.turnTo(Math.floor(place / ROWS_MAX)));
    this.packing = new Packing(byId("packing"), tones, open);
    this.pages = make("div", { class: "pages", hidden: true });
    byId("packing").append(this.pages);
    this.order = make("select", {}, optionsOf(Object.entries(ORDERS).map(([value, [word]]) => [value, word])));
    this.order.addEventListener("input", () => this.turnTo(0));
    byId("packing-tools").append(make("label", {}, "Order", this.order));
    // A server that does not answer is told by the next round.
    this.times = new TimeLines(tones, () => this.refreshTimes(true).catch(() => {}));
    this.makePages();
  }

  makePages() {
    this.before = make("button", { type: "button", on: { click: () => this.turnTo(this.page - 1) } }, "Consumers before");
    this.after = make("button", { type: "button", on: { click: () => this.turnTo(this.page + 1) } }, "Next consumers");
    this.where = make("span", { role: "status" });
    this.pages.append(this.before, this.after, this.where);
  }

  /** The figures that every view shows. */
  showStatus(status) {
    this.status = status;
    this.isLarge = status.partitions.total > 2000 || status.consumers.running > 60;
    showConditions(status.conditions);
    showDoing(status);
    showTiles(status, this.source.isSimulated === true);
    setText(byId("packing-capacity"), sentenceOf(status.capacity?.sentence));
  }

  due(what, period) {
    const now = performance.now();
    if (!this.source.isRecorded && now - this.asked[what] < period) return false;
    this.asked[what] = now;
    return true;
  }

  async refresh(hasDecision) {
    const all = [];
    if (this.due("consumers", this.isLarge ? CONSUMERS_PERIOD_MS : 0)) all.push(this.refreshConsumers());
    if (this.due("history", hasDecision ? 0 : 10_000)) all.push(this.refreshRecent());
    all.push(this.refreshTimes(false));
    await Promise.all(all);
  }

  async refreshConsumers() {
    const answer = await this.source.ask("consumers", { with: this.isLarge ? null : "partitions" });
    if (!answer) return;
    this.learnTopics(answer);
    this.answer = answer;
    this.showPacking();
  }

  learnTopics(answer) {
    const topics = new Set(answer.without_consumer.map((one) => one.topic));
    for (const row of answer.consumers) for (const one of row.by_topic) topics.add(one.topic);
    const sorted = [...topics].sort();
    this.tones.learn(sorted);
    if (sorted.join("\u0000") === this.topics?.join("\u0000")) return;
    this.topics = sorted;
    this.times.learnTopics(sorted);
    this.showKey();
  }

  turnTo(page) {
    this.page = Math.max(0, page);
    if (this.answer) this.showPacking();
  }

  showPacking() {
    const { consumers, without_consumer: unread } = this.answer;
    const ordered = [...consumers].sort(ORDERS[this.order.value][1]);
    const last = Math.max(0, Math.ceil(ordered.length / ROWS_MAX) - 1);
    this.page = Math.min(this.page, last);
    const from = this.page * ROWS_MAX;
    const rows = ordered.slice(from, from + ROWS_MAX).map((row) => (row.segments ? row : { ...row, segments: byTopic(row) }));
    if (unread.length) {
      const load = unread.reduce((sum, one) => sum + (one.load_bytes_per_s ?? 0), 0);
      rows.unshift({ consumer: NO_CONSUMER, segments: unread, load_bytes_per_s: load, partitions: unread.length });
    }
    if (last > 0) this.overview.show(ordered, from, Math.min(ordered.length, from + ROWS_MAX));
    else this.overview.hide();
    this.packing.show(rows);
    this.pages.hidden = last === 0;
    this.before.disabled = this.page === 0;
    this.after.disabled = this.page === last;
    const to = Math.min(ordered.length, from + ROWS_MAX);
    setText(this.where, `${countText(from + 1)} to ${countText(to)} of ${countText(ordered.length)}`);
    const known = `${counted(consumers.length, "consumer")}, ${counted(this.status.partitions.total, "partition")}`;
    setText(byId("packing-note"), `${known}${this.isLarge ? "; bars by topic" : ""}`);
  }

  showKey() {
    const sample = (text, ...classes) => make("span", { class: ["chip", ...classes].join(" "), "aria-hidden": "true" }, text);
    const topics = this.topics.slice(0, TOPICS_IN_KEY).map((topic) => make("li", {}, sample("", `tone-bg-${this.tones.of(topic)}`), topic));
    const more = this.topics.length - topics.length;
    const marks = ["target", "capacity"].map((word) =>
      make("li", {}, make("span", { class: `mark mark-${word}`, "aria-hidden": "true" }), word));
    const kinds = KEY.map(([text, kind, word]) => make("li", {}, sample(text, "tone-bg-7", kind), word));
    byId("packing-key").replaceChildren(...topics, more > 0 ? make("li", {}, `and ${more} more topics`) : "", ...marks, ...kinds);
  }

  async refreshRecent() {
    const answer = await this.source.ask("history", { limit: RECENT });
    if (answer) showDecisions(byId("recent"), answer.history.slice(0, RECENT));
  }

  async refreshTimes(isWanted) {
    if (!isWanted && !this.due("timeline", TIMELINE_PERIOD_MS)) return;
    if (this.source.isRecorded && this.times.answer && !isWanted) {
      this.times.view.nowMs = this.source.atMs; // the whole run is there already
      this.times.view.changed();
      return;
    }
    const answer = await this.source.ask("timeline", this.times.query());
    if (!answer) return;
    const incidents = (this.source.recording?.incidents ?? []).map((one) => ({ ...one, kind: "fault" }));
    const marks = [...(answer.timeline.marks ?? []), ...incidents].sort((a, b) => a.at_unix_ms - b.at_unix_ms);
    this.times.show({ ...answer.timeline, marks, newest_unix_ms: answer.snapshot.at_unix_ms });
  }

  /** What a recorded run came to, above everything else. */
  showResults(recording) {
    const results = Object.entries(recording.results ?? {});
    if (!results.length) return;
    const words = shortenedList((recording.incidents ?? []).map((one) => one.sentence), 4);
    byId("view-group").prepend(make("section", { class: "card", "aria-label": "What the run came to" },
      make("div", { class: "card-head" }, make("h2", {}, recording.title), make("span", { class: "note" }, words)),
      factList(results.map(([name, value]) => [name, String(value)]))));
  }
}
