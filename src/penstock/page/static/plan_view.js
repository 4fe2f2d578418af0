// The plan that would be made now, beside the present: what moves, and what that costs. Changes nothing.

import { clockText, counted, durationText, speedOfText, speedText } from "./format.js";
import { factList, linkButton, make } from "./elements.js";

const ROWS_MAX = 60;
const MOVES_MAX = 100;

function idOf(segment) {
  return `${segment.topic}-${segment.partition}`;
}

function objectiveText(cost) {
  return `${durationText(cost.freshness_s)}: ${counted(cost.consumers, "consumer")} and ${counted(cost.spare_consumers, "spare")}`;
}

export class PlanView {
  constructor(host, source, tones, open) {
    this.source = source;
    this.tones = tones;
    this.open = open;
    this.body = make("div");
    host.append(make("section", { class: "card", "aria-labelledby": "plan-title" },
      make("div", { class: "card-head" }, make("h2", { id: "plan-title" }, "The plan that would be made now"),
        make("span", { class: "note" }, "A dry run: it changes nothing.")),
      this.body));
  }

  say(words) {
    this.shape = null;
    this.body.replaceChildren(make("p", { class: "empty" }, words));
  }

  async refresh(isLarge) {
    let answer = null;
    try {
      answer = await this.source.ask("plan", { with: isLarge ? null : "partitions" });
    } catch (error) {
      if (!error.isAnswer) throw error;
      this.say(error.message);
      return;
    }
    if (!answer) this.say("The recording has no plan for this moment.");
    else this.show(answer.plan);
  }

  show(plan) {
    const shape = JSON.stringify([plan.made_unix_ms, plan.moves.length, plan.consumers.length]);
    if (shape === this.shape) return;
    this.shape = shape;
    const isCalm = plan.moves.length === 0;
    const facts = factList([
      ["Consumers that carry something", `${plan.consumers_now} now, ${plan.consumers_then} then`],
      ["No packing needs fewer than", String(plan.consumers_at_least)],
      plan.objective?.length ? ["What freshness costs", plan.objective.map(objectiveText).join("; ")] : null,
      ["Would move", isCalm ? "nothing" : `${counted(plan.moves.length, "partition")}, ${speedText(plan.moved_bytes_per_s)}`],
      ["Made", clockText(plan.made_unix_ms)],
      plan.create.length ? ["Would start", plan.create.map((one) => `consumer ${one}`).join(", ")] : null,
      plan.empty.length ? ["Would become idle", plan.empty.map((one) => `consumer ${one}`).join(", ")] : null,
      plan.oversize.length ? ["Faster than a whole consumer", plan.oversize.join(", ")] : null,
      plan.overloaded.length ? ["Would stay over capacity", plan.overloaded.map((one) => `consumer ${one}`).join(", ")] : null,
    ]);
    this.body.replaceChildren(facts, make("h3", { class: "apart" }, "Now and then"),
      make("p", { class: "note" }, "Each load stands beside its target, the dashed mark. A colour is a topic."), this.bars(plan), this.moves(plan));
  }

  bars(plan) {
    const longest = (row) => Math.max(row.now.load_bytes_per_s, row.then.load_bytes_per_s, row.capacity_bytes_per_s);
    const most = Math.max(1, ...plan.consumers.map(longest));
    const changed = (row) => row.now.load_bytes_per_s !== row.then.load_bytes_per_s;
    const ordered = [...plan.consumers.filter(changed), ...plan.consumers.filter((row) => !changed(row))];
    const target = new Map(plan.moves.map((move) => [move.partition, move]));
    const rows = ordered.slice(0, ROWS_MAX).map((row) => make("div", { class: "plan-row", role: "row" },
      make("span", { role: "rowheader" }, `consumer ${row.consumer}`),
      this.bar(row, "now", most, target), this.bar(row, "then", most, target)));
    const more = ordered.length - rows.length;
    return make("div", {}, make("div", { role: "table", "aria-label": "Load of each consumer now and with the plan" },
      make("div", { class: "plan-row head", role: "row" },
        ["consumer", "now", "then"].map((word) => make("span", { role: "columnheader" }, word))),
      rows), more > 0 ? make("p", { class: "note" }, `and ${more} more consumers`) : null);
  }

  bar(row, side, most, target) {
    const { load_bytes_per_s: load, segments } = row[side];
    const ordered = segments && [...segments].sort((a, b) => this.tones.of(a.topic) - this.tones.of(b.topic) || a.partition - b.partition);
    const parts = (ordered ?? [{ topic: "", partition: "", load_bytes_per_s: load }]).map((segment) => {
      const part = make("span", { class: `plan-part tone-bg-${segments ? this.tones.of(segment.topic) : 7}` });
      part.style.width = `${(segment.load_bytes_per_s / most) * 100}%`;
      if (segments) part.title = `${idOf(segment)}, ${speedText(segment.load_bytes_per_s)}`;
      if (target.has(idOf(segment))) part.classList.add(side === "now" ? "goes" : "comes");
      return part;
    });
    const mark = make("span", { class: "mark mark-target" });
    mark.style.left = `${(row.capacity_bytes_per_s / most) * 100}%`;
    const frame = make("div", { class: "plan-frame", "aria-hidden": "true" }, make("div", { class: "plan-bar" }, parts), mark);
    return make("div", { role: "cell" }, frame,
      make("span", { class: "note" }, speedOfText(load, row.capacity_bytes_per_s)));
  }

  moves(plan) {
    if (!plan.moves.length) return make("p", { class: "empty" }, "Nothing would move: the present packing is good enough.");
    const rows = plan.moves.slice(0, MOVES_MAX).map((move) => make("tr", {},
      make("td", { class: "name" }, linkButton(move.partition, () => this.open("partition", move.partition))),
      make("td", { class: "number" }, move.from === null ? "–" : String(move.from)), make("td", { class: "number" }, String(move.to)),
      make("td", { class: "number" }, speedText(move.load_bytes_per_s))));
    const heads = [["Partition", ""], ["From", "number"], ["To", "number"], ["Load", "number"]];
    const head = make("tr", {}, heads.map(([name, kind]) => make("th", { scope: "col", class: kind || null }, name)));
    return make("div", { class: "table-frame apart" }, make("table", {},
      make("caption", { class: "visually-hidden" }, "Partitions that would move"), make("thead", {}, head), make("tbody", {}, rows)));
  }
}
