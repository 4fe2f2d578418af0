// All partitions as a table, a page at a time: filtered and sorted by the server, so that ten thousand
// cost no more than a hundred.

import { countText, durationText, speedText } from "./format.js";
import { make, optionsOf, setAttribute, setText } from "./elements.js";
import { marksText } from "./packing.js";
import { partitionName } from "./topics.js";

const PAGE = 100;
const STATES = ["", "owned", "moving", "starting", "stopping", "stopped", "unread", "hot", "oversize", "behind"];
const COLUMNS = [
  { name: "Partition", sort: "name" },
  { name: "Consumer", sort: "consumer", isNumber: true, isWide: true },
  { name: "State" },
  { name: "Written", sort: "speed", isNumber: true },
  { name: "Behind", sort: "behind", isNumber: true },
  { name: "as time", isNumber: true, isWide: true },
];

/** `stopped` and the like, told apart by a symbol as well as by colour. */
export function stateWord(one) {
  const isDanger = one.state === "stopped" || one.state === "unread";
  const isWarn = !isDanger && (one.marks?.length > 0 || one.state !== "owned");
  const tone = isDanger ? "danger" : isWarn ? "warn" : "";
  return make("span", { class: "word", data: { tone } }, [one.state, ...(one.marks ?? [])].join(", "));
}

export class PartitionsView {
  constructor(host, source, open) {
    this.source = source;
    this.sort = "name";
    this.pages = [null];
    this.topic = make("select", {}, optionsOf([["", "all"]]));
    this.state = make("select", {}, optionsOf(STATES.map((state) => [state, state || "all"])));
    this.heads = COLUMNS.map(({ name, sort, isNumber, isWide }) => {
      const kinds = [isNumber ? "number" : "", isWide ? "narrow-away" : ""].filter(Boolean).join(" ");
      const words = sort ? make("button", { type: "button", on: { click: () => this.sortBy(sort) } }, name) : name;
      return make("th", { scope: "col", class: kinds || null }, words);
    });
    this.body = make("tbody");
    this.note = make("span", { class: "note", role: "status" });
    this.before = make("button", { type: "button", on: { click: () => this.turn(-1) } }, "Page before");
    this.after = make("button", { type: "button", on: { click: () => this.turn(1) } }, "Next page");
    host.append(
      make("section", { class: "card", "aria-labelledby": "partitions-title" },
        make("div", { class: "card-head" }, make("h2", { id: "partitions-title" }, "Partitions"), this.note),
        make("div", { class: "filters" }, make("label", {}, "Topic", this.topic), make("label", {}, "State or mark", this.state)),
        make("div", { class: "table-frame" }, make("table", {}, make("thead", {}, make("tr", {}, this.heads)), this.body)),
        make("div", { class: "pages" }, this.before, this.after)),
    );
    for (const control of [this.topic, this.state]) control.addEventListener("input", () => this.restart());
    this.body.addEventListener("click", (event) => {
      const link = event.target.closest("button");
      if (link) open(link.dataset.kind, link.dataset.name);
    });
  }

  learnTopics(topics) {
    const shape = topics.join("\u0000");
    if (shape === this.topicShape) return;
    this.topicShape = shape;
    const chosen = this.topic.value;
    this.topic.replaceChildren(...optionsOf([["", "all"], ...topics.map((topic) => [topic, topic])]));
    this.topic.value = topics.includes(chosen) ? chosen : "";
  }

  sortBy(sort) {
    // Figures are most useful with the largest first.
    if (this.sort === sort) this.sort = `-${sort}`;
    else if (this.sort === `-${sort}`) this.sort = sort;
    else this.sort = sort === "speed" || sort === "behind" ? `-${sort}` : sort;
    this.restart();
  }

  restart() {
    this.pages = [null];
    this.ask();
  }

  turn(direction) {
    if (direction < 0) this.pages.pop();
    else if (this.next) this.pages.push(this.next);
    this.ask();
  }

  /** For a person's click: a server that does not answer is told by the next round. */
  ask() {
    this.refresh().catch(() => {});
  }

  async refresh() {
    const answer = await this.source.ask("partitions", {
      topic: this.topic.value, state: this.state.value, sort: this.sort, limit: PAGE, after: this.pages.at(-1),
    });
    if (!answer) return;
    this.next = answer.next;
    const before = (this.pages.length - 1) * PAGE;
    const rows = answer.partitions;
    const stretch = `${countText(before + 1)} to ${countText(before + rows.length)} of ${countText(answer.total)}`;
    setText(this.note, rows.length ? stretch : "none fits these filters");
    this.before.disabled = this.pages.length === 1;
    this.after.disabled = !answer.next;
    COLUMNS.forEach((column, place) => {
      const direction = this.sort === column.sort ? "ascending" : this.sort === `-${column.sort}` ? "descending" : null;
      setAttribute(this.heads[place], "aria-sort", column.sort ? direction : null);
    });
    this.fill(rows);
  }

  /** The rows keep their elements, so that a focused link stays focused while figures change. */
  fill(rows) {
    while (this.body.rows.length > rows.length) this.body.deleteRow(-1);
    rows.forEach((one, place) => {
      const row = this.body.rows[place] ?? this.body.appendChild(this.newRow());
      const [name, consumer, state, speed, behind, time] = row.cells;
      setText(name.firstChild, partitionName(one));
      name.firstChild.dataset.name = partitionName(one);
      consumer.firstChild.hidden = one.consumer === null;
      setText(consumer.firstChild, one.consumer ?? "");
      consumer.firstChild.dataset.name = one.consumer ?? "";
      const shape = [one.state, ...one.marks].join(" ");
      if (state.dataset.shape !== shape) {
        state.dataset.shape = shape;
        state.replaceChildren(stateWord(one));
        state.title = marksText(one);
      }
      setText(speed, speedText(one.write_speed_bytes_per_s));
      setText(behind, `${one.behind_is_at_most ? "≤ " : ""}${countText(one.behind_records)}`);
      setText(time, durationText(one.behind_s));
    });
  }

  newRow() {
    const link = (kind) => make("button", { type: "button", class: "link", data: { kind } });
    return make("tr", {},
      make("td", { class: "name" }, link("partition")), make("td", { class: "number narrow-away" }, link("consumer")), make("td"),
      make("td", { class: "number" }), make("td", { class: "number" }), make("td", { class: "number narrow-away" }));
  }
}
