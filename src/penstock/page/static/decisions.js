// The history of decisions: what was decided, why, and what it cost; newest first, filterable.

import { clockText, counted, dateText, speedText, wordsOf } from "./format.js";
import { make, matchChildren, optionsOf, setText } from "./elements.js";

const SHOWN_MAX = 200;
const KIND_WORDS = { "": "all", move: "moves", start: "starts", end: "ends", fault: "faults", note: "notes" };

function costText(one) {
  if (!one.moves) return "";
  const speed = one.moved_bytes_per_s ? `, ${speedText(one.moved_bytes_per_s)}` : "";
  return `${counted(one.moves, "move")}${speed}`;
}

function timesText(one) {
  return one.times > 1 ? ` (${one.times} times since ${clockText(one.first_unix_ms)})` : "";
}

/** Decisions in an `ol`; what is there already stays as it is. */
export function showDecisions(list, decisions) {
  matchChildren(
    list,
    decisions,
    (one) => one.id,
    () => make("li", { class: "decision" },
      make("time", { class: "decision-time" }),
      make("p", {}, make("span", { class: "decision-code" }), make("span", { class: "decision-cost" })),
      make("p", { class: "decision-why" })),
    (element, one) => {
      const [time, head, why] = element.children;
      element.dataset.kind = one.kind;
      setText(time, clockText(one.at_unix_ms));
      time.title = dateText(one.at_unix_ms);
      setText(head.children[0], wordsOf(one.code));
      setText(head.children[1], costText(one));
      setText(why, `${one.sentence}${timesText(one)}`);
    },
  );
}

export class DecisionsView {
  constructor(host) {
    this.list = make("ol");
    this.note = make("p", { class: "empty", hidden: true });
    this.kind = make("select", {}, optionsOf(Object.entries(KIND_WORDS)));
    this.code = make("select", {}, optionsOf([["", "all"]]));
    this.words = make("input", { type: "search", placeholder: "orders-3, consumer 2, ..." });
    this.count = make("span", { class: "note", role: "status" });
    host.append(
      make("section", { class: "card", "aria-labelledby": "decisions-title" },
        make("div", { class: "card-head" }, make("h2", { id: "decisions-title" }, "What was decided, and why"), this.count),
        make("div", { class: "filters" },
          make("label", {}, "Kind", this.kind), make("label", {}, "Decision", this.code), make("label", {}, "Words in it", this.words)),
        this.list, this.note),
    );
    this.all = [];
    for (const control of [this.kind, this.code, this.words]) control.addEventListener("input", () => this.filter());
  }

  /** All that are known, newest first. */
  show(decisions) {
    this.all = decisions;
    const codes = [...new Set(decisions.map((one) => one.code))].sort();
    const shape = codes.join(" ");
    if (shape !== this.codes) {
      this.codes = shape;
      const chosen = this.code.value;
      this.code.replaceChildren(...optionsOf([["", "all"], ...codes.map((code) => [code, wordsOf(code)])]));
      this.code.value = codes.includes(chosen) ? chosen : "";
    }
    this.filter();
  }

  filter() {
    const words = this.words.value.trim().toLowerCase();
    const found = this.all.filter((one) =>
      (!this.kind.value || one.kind === this.kind.value) &&
      (!this.code.value || one.code === this.code.value) &&
      (!words || `${one.sentence} ${wordsOf(one.code)}`.toLowerCase().includes(words)));
    const shown = found.slice(0, SHOWN_MAX);
    showDecisions(this.list, shown);
    setText(this.count, found.length > shown.length ? `the newest ${shown.length} of ${found.length}` : counted(found.length, "decision"));
    this.note.hidden = found.length > 0;
    setText(this.note, this.all.length ? "No decision fits these filters." : "Nothing has been decided yet.");
  }
}
