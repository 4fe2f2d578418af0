// The packing itself: one bar for each consumer, filled by its partitions in proportion, with marks at
// the capacity and the target. A partition that changes its consumer travels from bar to bar.

import { countText, counted, durationText, shareText, speedOfText, speedText } from "./format.js";
import { make, matchChildren, setAttribute, setText } from "./elements.js";
import { giveTips } from "./tip.js";
import { partitionName } from "./topics.js";

const CHIPS_MAX = 1200;
const NARROW_PX = 20;
// About the width of a letter, and of what is beside a label: for names that would not fit.
const LETTER_PX = 7;
const LABEL_PX = 12;
const SMALLEST_PX = 3;
const SILENT_S = 5;
const SYMBOLS = { oversize: "!!", hot: "▲", behind: "▼" };
export const NO_CONSUMER = "none";

/** What is special about a partition, in words. */
export function marksText(segment) {
  const words = [];
  if (segment.state === "stopped") words.push("stopped");
  if (segment.state === "unread") words.push("nobody reads it");
  if (segment.to !== null && segment.to !== undefined) words.push(`moves to consumer ${segment.to}`);
  if (segment.state === "starting") words.push("starting");
  if (segment.state === "stopping") words.push("stopping");
  const meanings = { oversize: "faster than a whole consumer", hot: "hot: takes more than half a consumer", behind: "far behind" };
  return [...words, ...(segment.marks ?? []).map((mark) => meanings[mark] ?? mark)].join(", ");
}

function symbolOf(segment) {
  if (segment.state === "stopped" || segment.state === "unread") return "✕";
  if (segment.to !== null && segment.to !== undefined) return `→${segment.to}`;
  return (segment.marks ?? []).map((mark) => SYMBOLS[mark] ?? "").join("");
}

/** The consumer's state in a few words, and how it should look. */
export function statusOf(row) {
  if (row.consumer === NO_CONSUMER) return ["nobody reads these", "danger"];
  if (row.state === "ready" && row.heard_s_ago !== null && row.heard_s_ago > SILENT_S) {
    return [`silent for ${durationText(row.heard_s_ago)}`, "danger"];
  }
  if (row.state !== "ready") return [row.state, "busy"];
  return [row.partitions ? counted(row.partitions, "partition") : "idle", ""];
}

export class Packing {
  /** `open(kind, name)` shows a story. */
  constructor(host, tones, open) {
    this.host = host;
    this.tones = tones;
    this.rowLayer = make("div", { role: "list", "aria-label": "Consumers with their partitions" });
    const help = "Partitions, in the bars of their consumers. Arrow keys move, Enter shows the story.";
    this.chipLayer = make("div", { class: "chips", role: "group", "aria-label": help });
    this.stage = make("div", { class: "packing" }, this.rowLayer, this.chipLayer);
    host.append(this.stage);
    this.segments = new Map();
    this.rows = [];
    this.chipLayer.addEventListener("click", (event) => {
      const key = event.target.closest(".chip")?.dataset.key;
      if (!this.segments.has(key)) return;
      const { segment, rowId } = this.segments.get(key);
      if (segment.isRest || segment.isTopic) open("consumer", rowId);
      else open("partition", partitionName(segment));
    });
    this.rowLayer.addEventListener("click", (event) => {
      const name = event.target.closest(".packing-name")?.dataset.consumer;
      if (name && name !== NO_CONSUMER) open("consumer", name);
    });
    this.chipLayer.addEventListener("keydown", (event) => this.pressed(event));
    giveTips(this.chipLayer, ".chip", (chip) => this.segments.get(chip.dataset.key)?.text);
    new ResizeObserver(() => this.rows.length && this.lay()).observe(this.stage);
  }

  /** Rows of consumers with their `segments`, as the API gives them. */
  show(rows) {
    this.rows = rows;
    this.lay();
  }

  lay() {
    const wide = this.stage.clientWidth;
    this.rowHeight = wide < 700 ? 68 : 46;
    this.stage.style.height = `${this.rows.length * this.rowHeight}px`;
    matchChildren(this.rowLayer, this.rows, (row) => row.consumer, () => this.newRow(), (element, row) => {
      element.style.transform = `translateY(${this.rows.indexOf(row) * this.rowHeight}px)`;
      element.style.height = `${this.rowHeight}px`;
    });
    this.measure();
    this.rows.forEach((row) => this.updateRow(this.rowLayer.keptByKey.get(row.consumer), row));
    matchChildren(this.chipLayer, this.chipsOf(), (chip) => chip.key, (chip) => this.newChip(chip), (element, chip) =>
      this.updateChip(element, chip));
    if (!this.chipLayer.querySelector('[tabindex="0"]')) this.chipLayer.firstElementChild?.setAttribute("tabindex", "0");
  }

  /** Where the bars are: the style sheet decides, also for narrow windows. */
  measure() {
    const track = this.rowLayer.querySelector(".packing-track");
    this.left = track?.offsetLeft ?? 0;
    this.barTop = track?.offsetTop ?? 0;
    this.barWidth = Math.max(40, track?.clientWidth ?? 0);
    const longest = this.rows.reduce(
      (most, row) => Math.max(most, row.load_bytes_per_s, row.capacity_bytes_per_s ?? 0), 1);
    this.scale = this.barWidth / (longest * 1.03);
  }

  newRow() {
    const parts = {
      consumer: make("span", { class: "packing-consumer" }),
      status: make("span", { class: "packing-status" }),
      target: make("div", { class: "mark mark-target" }),
      capacity: make("div", { class: "mark mark-capacity" }),
      load: make("b"),
      behind: make("span"),
    };
    parts.name = make("button", { class: "packing-name", type: "button" }, parts.consumer, parts.status);
    const row = make("div", { class: "packing-row", role: "listitem" },
      parts.name,
      make("div", { class: "packing-track", "aria-hidden": "true" }, parts.target, parts.capacity),
      make("div", { class: "packing-figures" }, parts.load, parts.behind));
    row.parts = parts;
    return row;
  }

  updateRow(element, row) {
    const { parts } = element;
    const isNone = row.consumer === NO_CONSUMER;
    const [status, tone] = statusOf(row);
    element.classList.toggle("unread", isNone);
    setAttribute(element, "data-tone", tone || null);
    setAttribute(element, "data-over", row.capacity_bytes_per_s && row.load_bytes_per_s > row.capacity_bytes_per_s ? "yes" : null);
    setAttribute(parts.name, "data-consumer", row.consumer);
    setText(parts.consumer, isNone ? "no consumer" : `consumer ${row.consumer}`);
    setText(parts.status, status);
    for (const [mark, value] of [[parts.target, row.target_bytes_per_s], [parts.capacity, row.capacity_bytes_per_s]]) {
      mark.hidden = isNone || !value;
      if (value) mark.style.left = `${Math.round(value * this.scale)}px`;
    }
    setText(parts.load, isNone ? speedText(row.load_bytes_per_s) : speedOfText(row.load_bytes_per_s, row.capacity_bytes_per_s));
    const behind = row.behind_s === null || row.behind_s === undefined ? null : `${durationText(row.behind_s)} behind`;
    const share = isNone || !row.capacity_bytes_per_s ? null : shareText(row.load_bytes_per_s / row.capacity_bytes_per_s);
    setText(parts.behind, isNone ? counted(row.segments.length, "partition") : [share, behind].filter(Boolean).join(" · "));
    setAttribute(parts.name, "aria-label", isNone ? `No consumer: ${parts.behind.textContent}` :
      `Consumer ${row.consumer}, ${status}, ${parts.load.textContent}, ${behind ?? "backlog unknown"}. Show its story`);
  }

  /** Where every partition is drawn; of a long row the smallest are drawn as one. */
  chipsOf() {
    const most = Math.max(4, Math.floor(CHIPS_MAX / Math.max(1, this.rows.length)));
    this.segments = new Map();
    const chips = [];
    this.rows.forEach((row, place) => {
      let x = this.left;
      for (const segment of this.joined(row, most)) {
        const key = segment.isRest || segment.isTopic ? `${segment.topic} of ${row.consumer}` : partitionName(segment);
        const width = Math.max(SMALLEST_PX, segment.load_bytes_per_s * this.scale);
        const chip = { key, segment, rowId: row.consumer, x, y: place * this.rowHeight + this.barTop, width };
        chip.text = this.textOf(segment, row);
        x += width;
        if (this.segments.has(key)) continue;
        this.segments.set(key, chip);
        chips.push(chip);
      }
    });
    return chips;
  }

  joined(row, most) {
    const wide = (segment) => segment.load_bytes_per_s * this.scale >= SMALLEST_PX || symbolOf(segment) !== "";
    const ordered = [...row.segments].sort((a, b) => this.tones.of(a.topic) - this.tones.of(b.topic) ||
      a.topic.localeCompare(b.topic) || a.partition - b.partition);
    let shown = ordered.filter(wide);
    if (shown.length > most) {
      const largest = new Set([...shown].sort((a, b) => b.load_bytes_per_s - a.load_bytes_per_s).slice(0, most));
      shown = shown.filter((one) => largest.has(one));
    }
    if (shown.length === ordered.length) return shown;
    const kept = new Set(shown);
    const rest = ordered.filter((one) => !kept.has(one));
    const load = rest.reduce((sum, one) => sum + one.load_bytes_per_s, 0);
    return [...shown, { isRest: true, count: rest.length, load_bytes_per_s: load, topic: "", state: "owned", to: null, marks: [] }];
  }

  textOf(segment, row) {
    const where = row.consumer === NO_CONSUMER ? "no consumer" : `consumer ${row.consumer}`;
    if (segment.isRest) return `${counted(segment.count, "smaller partition")}, ${speedText(segment.load_bytes_per_s)}, ${where}`;
    if (segment.isTopic) {
      return `${segment.topic}\n${counted(segment.partition, "partition")}, ${speedText(segment.load_bytes_per_s)}, ${where}`;
    }
    const special = marksText(segment);
    return `${partitionName(segment)}\n${speedText(segment.load_bytes_per_s)}, ${where}${special ? `\n${special}` : ""}`;
  }

  newChip(chip) {
    const tone = chip.segment.isRest ? 7 : this.tones.of(chip.segment.topic);
    return make("button", { type: "button", class: `chip tone-bg-${tone}`, tabindex: "-1", data: { key: chip.key } });
  }

  updateChip(element, chip) {
    const { segment, x, y, width } = chip;
    const before = element.drawn;
    if (before && before.rowId !== chip.rowId) this.travel(element);
    // Less than a pixel is not worth a paint: speeds change a little every second.
    if (!before || before.y !== y || Math.abs(before.x - x) >= 1 || Math.abs(before.width - width) >= 1) {
      element.style.transform = `translate(${x.toFixed(1)}px, ${y}px)`;
      element.style.width = `${width.toFixed(1)}px`;
      element.drawn = { x, y, width, rowId: chip.rowId };
    }
    const isMoving = segment.to !== null && segment.to !== undefined;
    const stands = segment.state === "stopped" || segment.state === "unread";
    const classes = [
      ["narrow", width < NARROW_PX], ["moving", isMoving], ["stopped", stands], ["rest", segment.isRest === true],
      ["oversize", segment.marks.includes("oversize")], ["hot", segment.marks.includes("hot")],
    ];
    for (const [name, holds] of classes) element.classList.toggle(name, holds);
    const name = segment.isRest ? `+${countText(segment.count)}` : segment.isTopic ? segment.topic : partitionName(segment);
    const short = segment.isRest || segment.isTopic ? name : String(segment.partition);
    setText(element, width < NARROW_PX ? "" : this.labelOf(segment, width, name, short));
    setAttribute(element, "aria-label", chip.text.replaceAll("\n", ", "));
  }

  /** The longest words that fit; half a number would be another one. */
  labelOf(segment, width, name, short) {
    const symbol = symbolOf(segment);
    const isMoving = symbol.startsWith("→");
    const both = (words) => (isMoving ? `${words} ${symbol}` : `${symbol} ${words}`).trim();
    const fits = (words) => width >= LABEL_PX + LETTER_PX * words.length;
    return [both(name), both(short), symbol].find(fits) ?? symbol.slice(0, 1);
  }

  travel(element) {
    element.classList.add("travels");
    setTimeout(() => element.classList.remove("travels"), 1000);
  }

  /** One tab stop for all partitions; the arrow keys go from one to the next, and between bars. */
  pressed(event) {
    const chips = [...this.segments.values()];
    const here = chips.findIndex((chip) => chip.key === document.activeElement?.dataset.key);
    if (here < 0) return;
    const rowsAway = (direction) => {
      const { x, y, width } = chips[here];
      const others = chips.filter((chip) => (chip.y - y) * direction > 0);
      const near = Math.min(...others.map((chip) => Math.abs(chip.y - y)));
      const middle = x + width / 2;
      return others.filter((chip) => Math.abs(chip.y - y) === near)
        .sort((a, b) => Math.abs(a.x + a.width / 2 - middle) - Math.abs(b.x + b.width / 2 - middle))[0];
    };
    const next = {
      ArrowRight: () => chips[here + 1],
      ArrowLeft: () => chips[here - 1],
      ArrowDown: () => rowsAway(1),
      ArrowUp: () => rowsAway(-1),
      Home: () => chips[0],
      End: () => chips.at(-1),
    }[event.key]?.();
    if (!next) return;
    event.preventDefault();
    document.activeElement.setAttribute("tabindex", "-1");
    const element = this.chipLayer.keptByKey.get(next.key);
    element.setAttribute("tabindex", "0");
    element.focus();
  }
}
