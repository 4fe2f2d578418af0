// Many consumers at once: each a thin column, as high as its load, against capacity and target. A click
// shows the consumers around that place below.

import { make, setText } from "./elements.js";
import { counted } from "./format.js";
import { themeColours } from "./theme.js";

const HEIGHT = 84;

export class Overview {
  constructor(host, chosen) {
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.words = make("p");
    this.host = make("div", { class: "overview", hidden: true }, this.canvas, this.words);
    host.append(this.host);
    this.rows = [];
    this.canvas.addEventListener("click", (event) => {
      const share = event.offsetX / this.canvas.clientWidth;
      chosen(Math.min(this.rows.length - 1, Math.floor(share * this.rows.length)));
    });
  }

  /** All consumers in their order; `from` and `to` are the places of those that are shown below. */
  show(rows, from, to) {
    this.rows = rows;
    this.host.hidden = false;
    const over = rows.filter((row) => row.load_bytes_per_s > row.capacity_bytes_per_s).length;
    const much = over ? `${counted(over, "consumer")} over capacity.` : "None is over capacity.";
    setText(this.words, `All ${counted(rows.length, "consumer")}, each a column; the frame marks those below. ${much}`);
    this.draw(from, to);
  }

  hide() {
    this.host.hidden = true;
  }

  draw(from, to) {
    const wide = this.canvas.clientWidth;
    const scale = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: Math.round(wide * scale), height: HEIGHT * scale });
    const pen = this.canvas.getContext("2d");
    const colours = themeColours();
    pen.scale(scale, scale);
    const most = this.rows.reduce((top, row) => Math.max(top, row.load_bytes_per_s, row.capacity_bytes_per_s), 1) * 1.05;
    const step = wide / this.rows.length;
    const yOf = (value) => HEIGHT - (value / most) * (HEIGHT - 4);
    this.rows.forEach((row, place) => {
      const isOver = row.load_bytes_per_s > row.capacity_bytes_per_s;
      pen.fillStyle = isOver ? colours.danger : row.state === "ready" ? colours.accent : colours.faint;
      const y = yOf(row.load_bytes_per_s);
      pen.fillRect(place * step, y, Math.max(1, step - (step > 3 ? 1 : 0)), HEIGHT - y);
    });
    pen.strokeStyle = colours.text;
    for (const [value, dash] of [[this.rows[0]?.capacity_bytes_per_s, []], [this.rows[0]?.target_bytes_per_s, [4, 3]]]) {
      if (!value) continue;
      pen.setLineDash(dash);
      pen.beginPath();
      pen.moveTo(0, Math.round(yOf(value)) + 0.5);
      pen.lineTo(wide, Math.round(yOf(value)) + 0.5);
      pen.stroke();
    }
    pen.setLineDash([]);
    pen.lineWidth = 2;
    pen.strokeRect(from * step + 1, 1, Math.max(3, (to - from) * step - 2), HEIGHT - 2);
  }
}
