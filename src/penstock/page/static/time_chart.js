// One time line: lines, steps or a stack over time, drawn on a canvas. All of them share a stretch of
// time and a cursor. With the pointer: move to read values, drag to zoom, double click for everything.
// With the keyboard: arrows move the cursor, + and - zoom, Home shows everything, Escape lets go.

import { clockText } from "./format.js";
import { make, makeSvg, setAttribute, setText } from "./elements.js";
import { themeColours } from "./theme.js";

const LEFT = 62;
const RIGHT = 12;
const TOP = 8;
const BOTTOM = 22;
const TIME_STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400];
// For values that are times: `2 min` fits beside an axis, and `1 min 40 s` does not.
const VALUE_STEPS_S = [0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1200, 3600, 7200, 21600, 43200, 86400];

/** The place of the newest time that is not after `atMs`; -1 when all are later. */
function placeAt(times, atMs) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= atMs) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function niceStep(span, parts) {
  const raw = span / parts;
  const power = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= raw);
  return step * power;
}

/** A short sample of a line, for the legend: dashes tell lines apart without colour. */
function lineSample(series) {
  const line = series.isArea
    ? makeSvg("rect", { x: 1, y: 2, width: 16, height: 8, rx: 2 })
    : makeSvg("line", { x1: 0, y1: 6, x2: 18, y2: 6, "stroke-dasharray": (series.dash ?? []).join(" ") });
  line.classList.add(series.isArea ? "sample-area" : "sample-line", `tone-${series.tone}`);
  return makeSvg("svg", { class: "sample", width: 18, height: 12, "aria-hidden": "true" }, line);
}

export class TimeChart {
  /** `options`: title, valueText, height, isWhole (whole numbers on the axis), isTime (values are seconds), empty (a sentence). */
  constructor(host, view, options) {
    this.view = view;
    this.options = options;
    this.times = [];
    this.series = [];
    this.isStacked = false;
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.marker = make("div", { class: "chart-selection", hidden: true });
    this.area = make(
      "div",
      {
        class: "chart-area",
        tabindex: "0",
        role: "slider",
        "aria-label": `${options.title}: moment`,
        "aria-orientation": "horizontal",
      },
      this.canvas,
      this.marker,
    );
    this.area.style.height = `${options.height ?? 150}px`;
    this.legend = make("ul", { class: "legend" });
    this.moment = make("span", { class: "chart-moment" });
    this.tools = make("div", { class: "chart-tools" });
    host.append(
      make(
        "figure",
        { class: "chart" },
        make("figcaption", {}, make("span", { class: "chart-title" }, options.title), this.moment, this.tools),
        this.area,
        this.legend,
      ),
    );
    this.listen();
    view.onChange(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.area);
  }

  /** `series`: name, values (null where unknown), tone, and dash, isStep, isArea, width. */
  setData(times, series, { isStacked = false } = {}) {
    this.times = times;
    this.series = series;
    this.isStacked = isStacked;
    const shape = series.map((one) => `${one.name}\u0000${one.tone}`).join("\u0001");
    if (shape !== this.shape) {
      this.shape = shape;
      this.values = series.map(() => make("span", { class: "legend-value" }));
      this.legend.replaceChildren(
        ...series.map((one, place) =>
          make("li", {}, lineSample(one), make("span", { class: "legend-name" }, one.name), this.values[place]),
        ),
      );
    }
  }

  listen() {
    let draggedFrom = null;
    const at = (event) => event.clientX - this.area.getBoundingClientRect().left;
    this.area.addEventListener("pointermove", (event) => {
      const x = at(event);
      this.view.look(this.timeAt(x));
      if (draggedFrom !== null) {
        this.marker.hidden = Math.abs(x - draggedFrom) < 6;
        this.marker.style.left = `${Math.min(x, draggedFrom)}px`;
        this.marker.style.width = `${Math.abs(x - draggedFrom)}px`;
      }
    });
    this.area.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button === 0) draggedFrom = at(event);
    });
    this.area.addEventListener("pointerup", (event) => {
      const x = at(event);
      if (draggedFrom !== null && Math.abs(x - draggedFrom) >= 6) {
        const times = [this.timeAt(draggedFrom), this.timeAt(x)].sort((a, b) => a - b);
        this.view.select(...times);
      }
      draggedFrom = null;
      this.marker.hidden = true;
    });
    this.area.addEventListener("pointerleave", () => {
      draggedFrom = null;
      this.marker.hidden = true;
      this.view.look(null);
    });
    this.area.addEventListener("dblclick", () => this.view.showNewest(null));
    this.area.addEventListener("keydown", (event) => this.pressed(event));
    this.area.addEventListener("blur", () => this.view.look(null));
  }

  pressed(event) {
    const act = {
      ArrowLeft: () => this.view.step(event.shiftKey ? -0.1 : -0.02),
      ArrowRight: () => this.view.step(event.shiftKey ? 0.1 : 0.02),
      "+": () => this.view.zoom(0.5),
      "=": () => this.view.zoom(0.5),
      "-": () => this.view.zoom(2),
      Home: () => this.view.showNewest(null),
      End: () => this.view.look(this.view.last),
      Escape: () => this.view.look(null),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  timeAt(x) {
    const { fromMs, toMs } = this.view.range();
    const share = (x - LEFT) / Math.max(1, this.width - LEFT - RIGHT);
    return fromMs + Math.min(1, Math.max(0, share)) * (toMs - fromMs);
  }

  xOf(timeMs) {
    const { fromMs, toMs } = this.view.range();
    return LEFT + ((timeMs - fromMs) / (toMs - fromMs)) * (this.width - LEFT - RIGHT);
  }

  draw() {
    this.width = this.area.clientWidth;
    this.height = this.area.clientHeight;
    if (this.width < 10) return;
    const scale = devicePixelRatio || 1;
    const [wide, high] = [Math.round(this.width * scale), Math.round(this.height * scale)];
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      Object.assign(this.canvas, { width: wide, height: high });
    }
    this.pen = this.canvas.getContext("2d");
    this.pen.setTransform(scale, 0, 0, scale, 0, 0);
    this.pen.clearRect(0, 0, this.width, this.height);
    this.colours = themeColours();
    const { fromMs, toMs } = this.view.range();
    this.begin = Math.max(0, placeAt(this.times, fromMs));
    this.end = Math.min(this.times.length - 1, placeAt(this.times, toMs) + 1);
    this.drawContent();
    this.drawCursor();
    this.read();
  }

  drawContent() {
    this.top = this.highest();
    this.drawAxes();
    this.pen.save();
    this.pen.beginPath();
    this.pen.rect(LEFT, 0, this.width - LEFT - RIGHT, this.height - BOTTOM + 1);
    this.pen.clip();
    if (this.isStacked) this.drawStack();
    else for (const one of this.series) this.drawLine(one);
    this.pen.restore();
  }

  highest() {
    let top = 0;
    for (let place = this.begin; place <= this.end; place += 1) {
      let sum = 0;
      for (const one of this.series) {
        const value = one.values[place] ?? 0;
        sum = this.isStacked ? sum + value : Math.max(sum, value);
      }
      top = Math.max(top, sum);
    }
    const least = this.options.least ?? (this.options.isWhole ? 2 : 1);
    const span = Math.max(top, least) * 1.05;
    const timeStep = this.options.isTime ? VALUE_STEPS_S.find((one) => span / one <= 3) : undefined;
    const step = Math.max(timeStep ?? niceStep(span, 3), this.options.isWhole ? 1 : 0);
    this.valueStep = this.options.isWhole ? Math.ceil(step) : step;
    return Math.ceil((Math.max(top, least) * 1.02) / this.valueStep) * this.valueStep;
  }

  yOf(value) {
    return TOP + (1 - value / this.top) * (this.height - TOP - BOTTOM);
  }

  drawAxes() {
    const { pen, colours } = this;
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = colours.faint;
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (let value = 0; value <= this.top * 1.001; value += this.valueStep) {
      const y = Math.round(this.yOf(value)) + 0.5;
      pen.beginPath();
      pen.moveTo(LEFT, y);
      pen.lineTo(this.width - RIGHT, y);
      pen.stroke();
      pen.fillText(this.options.valueText(value), LEFT - 8, y);
    }
    this.drawTimes();
  }

  drawTimes() {
    const { pen, colours } = this;
    const { fromMs, toMs } = this.view.range();
    const spanS = (toMs - fromMs) / 1000;
    const parts = Math.max(2, Math.floor((this.width - LEFT - RIGHT) / 75));
    const stepMs = 1000 * (TIME_STEPS_S.find((one) => spanS / one <= parts) ?? niceStep(spanS, parts));
    pen.fillStyle = colours.faint;
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (let time = Math.ceil(fromMs / stepMs) * stepMs; time <= toMs; time += stepMs) {
      const x = this.xOf(time);
      if (x < LEFT + 20 || x > this.width - RIGHT - 18) continue;
      const text = clockText(time);
      pen.fillText(stepMs >= 60_000 ? text.slice(0, 5) : text, x, this.height - BOTTOM + 6);
    }
  }

  toneOf(one) {
    return typeof one.tone === "number" ? this.colours.series[one.tone % 10] : this.colours[one.tone];
  }

  drawLine(one) {
    const { pen } = this;
    pen.strokeStyle = this.toneOf(one);
    pen.lineWidth = one.width ?? 2;
    pen.lineJoin = "round";
    pen.setLineDash(one.dash ?? []);
    pen.beginPath();
    let before = null;
    for (let place = this.begin; place <= this.end; place += 1) {
      const value = one.values[place];
      if (value === null || value === undefined) {
        before = null; // unknown is a gap, never 0
        continue;
      }
      const [x, y] = [this.xOf(this.times[place]), this.yOf(value)];
      if (before === null) pen.moveTo(x, y);
      else if (one.isStep) {
        pen.lineTo(x, before);
        pen.lineTo(x, y);
      } else pen.lineTo(x, y);
      before = y;
    }
    pen.stroke();
    pen.setLineDash([]);
  }

  drawStack() {
    // What is unknown is a gap: each run of known moments is a stack of its own.
    const isKnown = (place) => this.series.some((one) => one.values[place] !== null && one.values[place] !== undefined);
    let begin = null;
    for (let place = this.begin; place <= this.end + 1; place += 1) {
      const goesOn = place <= this.end && isKnown(place);
      if (goesOn && begin === null) begin = place;
      if (!goesOn && begin !== null) {
        this.drawLayers(begin, place - 1);
        begin = null;
      }
    }
  }

  drawLayers(begin, end) {
    const { pen } = this;
    const below = new Float64Array(end - begin + 1);
    for (const one of this.series) {
      pen.fillStyle = this.toneOf(one);
      pen.strokeStyle = this.colours.surface;
      pen.lineWidth = 1;
      pen.beginPath();
      for (let place = begin; place <= end; place += 1) {
        pen.lineTo(this.xOf(this.times[place]), this.yOf(below[place - begin] + (one.values[place] ?? 0)));
      }
      for (let place = end; place >= begin; place -= 1) {
        pen.lineTo(this.xOf(this.times[place]), this.yOf(below[place - begin]));
        below[place - begin] += one.values[place] ?? 0;
      }
      pen.closePath();
      pen.fill();
      pen.stroke();
    }
  }

  drawCursor() {
    const { pen, view } = this;
    if (!this.times.length) {
      pen.fillStyle = this.colours.faint;
      pen.textAlign = "center";
      pen.fillText(this.options.empty ?? "Nothing is known yet.", this.width / 2, this.height / 2 - 8);
    }
    if (view.nowMs !== null) this.drawNow();
    if (view.cursorMs === null) return;
    const x = Math.round(this.xOf(view.cursorMs)) + 0.5;
    pen.strokeStyle = this.colours.text;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x, TOP);
    pen.lineTo(x, this.height - BOTTOM);
    pen.stroke();
  }

  /** The moment that a recording is at. */
  drawNow() {
    const { pen } = this;
    const x = Math.round(this.xOf(this.view.nowMs)) + 0.5;
    pen.strokeStyle = this.colours.accent;
    pen.lineWidth = 2;
    pen.setLineDash([5, 3]);
    pen.beginPath();
    pen.moveTo(x, TOP);
    pen.lineTo(x, this.height - BOTTOM);
    pen.stroke();
    pen.setLineDash([]);
  }

  /** The values at the cursor, or the newest ones, in the legend and for screen readers. */
  read() {
    const atMs = this.view.cursorMs ?? this.view.nowMs ?? this.view.range().toMs;
    const place = placeAt(this.times, atMs);
    const said = this.series.map((one, which) => {
      const value = place < 0 ? null : one.values[place];
      const text = value === null || value === undefined ? "–" : this.options.valueText(value);
      if (this.values?.[which]) setText(this.values[which], text);
      return `${one.name} ${text === "–" ? "unknown" : text}`;
    });
    this.tell(atMs, said.join(", "));
  }

  tell(atMs, said) {
    setText(this.moment, this.view.cursorMs === null ? "" : clockText(atMs));
    setAttribute(this.area, "aria-valuemin", Math.round(this.view.first / 1000));
    setAttribute(this.area, "aria-valuemax", Math.round(this.view.last / 1000));
    setAttribute(this.area, "aria-valuenow", Math.round(atMs / 1000));
    setAttribute(this.area, "aria-valuetext", `${clockText(atMs)}: ${said}`);
  }
}
