// The story of one partition, one consumer or one table, in a panel beside the view.

import { clockText, countText, counted, durationText, shareText, speedOfText, speedText } from "./format.js";
import { byId, factList, linkButton, make } from "./elements.js";
import { showDecisions } from "./decisions.js";
import { stateWord } from "./partitions.js";
import { statusOf } from "./packing.js";
import { tableFacts } from "./table_story.js";
import { TimeChart } from "./time_chart.js";
import { TimeView } from "./time_view.js";
import { partitionPath } from "./address.js";
import { partitionName } from "./topics.js";

const PARTITIONS_SHOWN = 60;
const CHANGES_SHOWN = 30;
const TITLES = { partition: "Partition", consumer: "Consumer", table: "Table" };

function offsetText(offset) {
  return offset === null || offset === undefined ? "unknown" : countText(offset);
}

function partitionFacts(one) {
  return factList([
    ["Read by", one.consumer === null ? "nobody" : `consumer ${one.consumer}`],
    ["State", stateWord(one)],
    ["Written", speedText(one.write_speed_bytes_per_s)],
    ["Counted for a plan", speedText(one.load_bytes_per_s)],
    ["Behind", `${one.behind_is_at_most ? "at most " : ""}${countText(one.behind_records)} records`],
    ["as time of writing", durationText(one.behind_s)],
    ["Next offset for the lake", offsetText(one.next_offset)],
    ["End of the log", offsetText(one.end_offset)],
    ["Begin of the log", offsetText(one.start_offset)],
    one.to === null || one.to === undefined ? null : ["Moves to", `consumer ${one.to}`],
    one.stopped_reason ? ["Stopped because", [one.stopped_reason, one.stopped_detail].filter(Boolean).join(": ")] : null,
  ]);
}

function consumerFacts(one) {
  return factList([
    ["State", statusOf(one)[0]],
    ["Load", `${speedOfText(one.load_bytes_per_s, one.capacity_bytes_per_s)} (${shareText(one.share)})`],
    ["Carries", speedText(one.carried_bytes_per_s)],
    ["Measured capacity", speedText(one.measured_capacity_bytes_per_s)],
    ["Behind", `${countText(one.behind_records)} records`],
    ["as time of writing", durationText(one.behind_s)],
    ["Last heard", one.heard_s_ago === null ? "never" : `${durationText(one.heard_s_ago)} ago`],
    ["Run", `incarnation ${one.incarnation}, version ${one.deployment_version}`],
    one.occupation ? ["It says", one.occupation] : null,
  ]);
}

/** Owners of a partition or states of a consumer over time, newest first. */
function changeList(changes, wordsOf) {
  const rows = changes.slice(-CHANGES_SHOWN).reverse().map((change) => {
    const seconds = ((change.to_unix_ms ?? Date.now()) - change.from_unix_ms) / 1000;
    const lasted = change.to_unix_ms === null ? "until now" : `for ${durationText(seconds)}`;
    const when = make("span", { class: "note" }, `${clockText(change.from_unix_ms)}, ${lasted}`);
    return make("li", {}, make("span", {}, wordsOf(change)), when);
  });
  return rows.length ? make("ul", { class: "part-list" }, rows) : make("p", { class: "empty" }, "No change has been seen.");
}

export class StoryPanel {
  /** `close` is called when the panel should go, `open(kind, name)` when a story is asked for. */
  constructor(source, open, close) {
    this.source = source;
    this.open = open;
    this.host = byId("panel");
    this.close = close;
    this.key = null;
    this.host.addEventListener("keydown", (event) => event.key === "Escape" && close());
  }

  hide() {
    this.key = null;
    this.host.hidden = true;
    this.host.replaceChildren();
    if (this.opener?.isConnected) this.opener.focus();
    this.opener = null;
  }

  async show(kind, name) {
    const key = `${kind} ${name}`;
    if (key !== this.key) {
      if (this.host.hidden) this.opener = document.activeElement;
      this.key = key;
      this.build(kind, name);
      this.host.hidden = false;
      this.host.querySelector(".panel-close").focus();
    }
    const answer = await this.asked(kind, name);
    if (this.key !== key) return;
    if (!answer) this.facts.replaceChildren(make("p", { class: "empty" }, `There is no ${kind} ${name} now.`));
    else if (kind === "table") this.facts.replaceChildren(tableFacts(answer.table, answer.readMs));
    else if (kind === "partition") this.fillPartition(answer);
    else this.fillConsumer(answer);
  }

  /** Null where there is no such thing, also where no such thing can be. */
  async asked(kind, name) {
    if (kind === "table") return this.table(name);
    if (!TITLES[kind]) return null;
    try {
      return await this.source.ask(kind === "partition" ? partitionPath(name) : `consumers/${encodeURIComponent(name)}`);
    } catch (error) {
      if (error.code === "bad_query") return null;
      throw error;
    }
  }

  async table(name) {
    const answer = await this.source.ask("tables");
    const table = answer?.tables.find((one) => one.table === name);
    return table ? { table, readMs: answer.read_unix_ms } : null;
  }

  build(kind, name) {
    this.view = new TimeView();
    this.facts = make("div");
    this.charts = make("div");
    this.changes = make("div");
    this.parts = make("div");
    this.decisions = make("ol");
    const word = TITLES[kind] ?? kind;
    const close = make("button", { type: "button", class: "panel-close", "aria-label": "Close the story" }, "Close");
    close.addEventListener("click", () => this.close());
    this.host.replaceChildren(
      make("div", { class: "panel-head" }, make("h2", { id: "panel-title" }, `${word} ${name}`), close),
      this.facts, this.charts, this.parts, this.changes, this.decisions);
    if (kind !== "partition" && kind !== "consumer") return; // no figures over time
    const titles = kind === "partition" ? ["Write speed", "Behind, in records"] : ["Load and what it carries", "Behind, in records"];
    this.speed = new TimeChart(this.charts, this.view, { title: titles[0], valueText: speedText, height: 120 });
    this.behind = new TimeChart(this.charts, this.view, { title: titles[1], valueText: countText, height: 110, isWhole: true });
  }

  fillPartition(answer) {
    this.facts.replaceChildren(partitionFacts(answer.partition));
    const series = this.seriesOf(answer);
    this.speed.setData(series.at_unix_ms, [{ name: "written", values: series.write_speed_bytes_per_s, tone: "accent" }]);
    this.fillRest(answer, series, "Who read it", (change) =>
      `${change.consumer === null ? "nobody" : `consumer ${change.consumer}`}${change.state === "owned" ? "" : `, ${change.state}`}`);
  }

  fillConsumer(answer) {
    const row = answer.consumer;
    this.facts.replaceChildren(row ? consumerFacts(row) : make("p", { class: "empty" }, "This consumer is gone."));
    const series = this.seriesOf(answer);
    this.speed.setData(series.at_unix_ms, [
      { name: "load", values: series.load_bytes_per_s, tone: "accent" },
      { name: "carried", values: series.carried_bytes_per_s, tone: "good", dash: [5, 3] },
    ]);
    const segments = [...(row?.segments ?? [])].sort((a, b) => b.load_bytes_per_s - a.load_bytes_per_s);
    const items = segments.slice(0, PARTITIONS_SHOWN).map((one) => make("li", {},
      linkButton(partitionName(one), () => this.open("partition", partitionName(one))),
      make("span", {}, speedText(one.load_bytes_per_s))));
    const more = segments.length - items.length;
    this.parts.replaceChildren(make("h3", {}, `Reads ${counted(segments.length, "partition")}`), make("ul", { class: "part-list" }, items),
      more > 0 ? make("p", { class: "note" }, `and ${countText(more)} slower ones`) : "");
    this.fillRest(answer, series, "Its states", (change) => change.state);
  }

  seriesOf(answer) {
    const story = answer.story ?? {};
    const recent = story.recent ?? { at_unix_ms: [] };
    return recent.at_unix_ms.length >= (story.whole?.at_unix_ms.length ?? 0) ? recent : story.whole;
  }

  fillRest(answer, series, title, wordsOf) {
    const times = series.at_unix_ms;
    this.behind.setData(times, [{ name: "behind", values: series.behind_records, tone: "warn" }]);
    if (times.length) this.view.setExtent(times[0], times.at(-1));
    this.changes.replaceChildren(make("h3", {}, title), changeList(answer.story?.changes ?? [], wordsOf));
    this.changes.append(make("h3", {}, "What was decided about it"));
    showDecisions(this.decisions, answer.history ?? []);
    if (!(answer.history ?? []).length) this.changes.append(make("p", { class: "empty" }, "No decision names it."));
  }
}
