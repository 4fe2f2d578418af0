// The health of the lake's tables: files, their sizes, how long a reader's way through the log is, and
// when they were compacted. A click on a table shows all that is known of it.

import { ageText, countText, sizeText } from "./format.js";
import { linkButton, make } from "./elements.js";
import { agoText, healthWord } from "./table_story.js";

const COLUMNS = [
  ["Table", ""],
  ["Health", ""],
  ["Files", "number"],
  ["Small files", "number narrow-away"],
  ["Size", "number"],
  ["Records", "number narrow-away"],
  ["Log since checkpoint", "number narrow-away"],
  ["Last compacted", "number narrow-away"],
  ["Newest file", "number narrow-away"],
];

export class TablesView {
  constructor(host, source, open) {
    this.source = source;
    this.open = open;
    this.body = make("div", {}, make("p", { class: "empty" }, "Reading the tables."));
    this.note = make("span", { class: "note" });
    host.append(make("section", { class: "card", "aria-labelledby": "tables-title" },
      make("div", { class: "card-head" }, make("h2", { id: "tables-title" }, "Tables in the lake"), this.note), this.body));
  }

  async refresh() {
    const answer = await this.source.ask("tables");
    if (!answer || answer.unreachable || !answer.tables.length) {
      const words = answer ? answer.unreachable ?? "There is no table yet." : "The recording does not tell about tables.";
      this.body.replaceChildren(make("p", { class: "empty" }, words));
      return;
    }
    this.note.textContent = `read ${ageText(Math.max(0, Date.now() - answer.read_unix_ms) / 1000)} ago`;
    if (this.source.isRecorded) this.note.textContent = "";
    const heads = COLUMNS.map(([name, kind]) => make("th", { scope: "col", class: kind || null }, name));
    this.body.replaceChildren(make("div", { class: "table-frame" }, make("table", {}, make("thead", {}, make("tr", {}, heads)),
      make("tbody", {}, answer.tables.map((one) => this.row(one, answer.read_unix_ms))))));
  }

  row(one, readMs) {
    const compacted = one.compaction === null ? "never" : agoText(one.compaction.last_unix_ms, readMs);
    const cells = [linkButton(one.table, () => this.open("table", one.table)), healthWord(one), countText(one.files),
      countText(one.small_files), sizeText(one.bytes), countText(one.records), countText(one.entries_since_checkpoint), compacted,
      agoText(one.newest_file_unix_ms, readMs)];
    return make("tr", {}, cells.map((cell, place) => make("td", { class: place ? COLUMNS[place][1] || null : "name" }, cell)));
  }
}
