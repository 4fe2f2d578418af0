// What happened, over time: moves, starts, ends and faults, one row each. A shape for each kind, so that
// colour is never needed. The same stretch of time and cursor as the other time lines.

import { clockText, counted } from "./format.js";
import { make, setText } from "./elements.js";
import { TimeChart } from "./time_chart.js";

const LEFT = 62;
const RIGHT = 12;
const ROW = 24;
const NEAR_PX = 8;
const KINDS = [
  { kind: "move", name: "moves", tone: "accent" },
  { kind: "start", name: "starts", tone: "good" },
  { kind: "end", name: "ends", tone: "faint" },
  { kind: "fault", name: "faults", tone: "danger" },
];

const SHAPES = {
  move: (pen, x, y) => pen.arc(x, y, 4.5, 0, 2 * Math.PI),
  start: (pen, x, y) => {
    pen.moveTo(x, y - 5);
    pen.lineTo(x + 5, y + 4);
    pen.lineTo(x - 5, y + 4);
    pen.closePath();
  },
  end: (pen, x, y) => pen.rect(x - 4, y - 4, 8, 8),
  fault: (pen, x, y) => {
    pen.moveTo(x - 4, y - 4);
    pen.lineTo(x + 4, y + 4);
    pen.moveTo(x + 4, y - 4);
    pen.lineTo(x - 4, y + 4);
  },
};

export class EventChart extends TimeChart {
  constructor(host, view, options) {
    super(host, view, { ...options, height: KINDS.length * ROW + 30 });
    this.events = [];
    this.words = make("p", { class: "event-words" });
    this.legend.replaceWith(this.words);
  }

  /** `events`: atMs, kind, text; the oldest first. */
  setEvents(events) {
    this.events = events;
  }

  drawContent() {
    const { pen, colours } = this;
    pen.font = "11px system-ui, sans-serif";
    KINDS.forEach(({ kind, name, tone }, row) => {
      const y = 12 + row * ROW;
      pen.strokeStyle = colours.line;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(LEFT, y + 0.5);
      pen.lineTo(this.width - RIGHT, y + 0.5);
      pen.stroke();
      pen.fillStyle = colours.faint;
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      pen.fillText(name, LEFT - 8, y);
      this.drawMarks(kind, colours[tone], y);
    });
    this.drawTimes();
  }

  drawMarks(kind, colour, y) {
    const { pen } = this;
    let before = -10;
    for (const event of this.events) {
      if (event.kind !== kind) continue;
      const x = this.xOf(event.atMs);
      // One mark for each pixel is enough, however many events there are.
      if (x < LEFT - 1 || x > this.width - RIGHT + 1 || Math.abs(x - before) < 1) continue;
      before = x;
      pen.beginPath();
      SHAPES[kind](pen, x, y);
      pen.fillStyle = colour;
      pen.strokeStyle = kind === "fault" ? colour : this.colours.surface;
      pen.lineWidth = kind === "fault" ? 2.5 : 1.5;
      if (kind !== "fault") pen.fill();
      pen.stroke();
    }
  }

  drawCursor() {
    this.times = this.events.length ? [this.events[0].atMs] : [];
    super.drawCursor();
  }

  /** The events near the cursor in words, or how many are in view. */
  read() {
    const { fromMs, toMs } = this.view.range();
    const cursor = this.view.cursorMs;
    const near = ((toMs - fromMs) / Math.max(1, this.width)) * NEAR_PX;
    const found = this.events.filter(({ atMs }) =>
      cursor === null ? atMs >= fromMs && atMs <= toMs : Math.abs(atMs - cursor) <= near,
    );
    const said =
      cursor === null
        ? KINDS.map(({ kind, name }) => `${name} ${found.filter((one) => one.kind === kind).length}`).join(", ")
        : found.slice(-2).map((one) => `${clockText(one.atMs)} ${one.text}`).join(" · ") || "nothing here";
    setText(this.words, cursor !== null && found.length > 2 ? `${counted(found.length, "event")}: ${said}` : said);
    this.tell(cursor ?? toMs, said);
  }
}
