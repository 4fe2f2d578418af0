// The stretch of time that all time lines show together, and the moment that is looked at.

const SHORTEST_MS = 5_000;
const FILLED_MS = 60_000;

export class TimeView {
  constructor() {
    this.listeners = [];
    this.first = 0;
    this.last = 1;
    this.spanMs = null; // null: everything
    this.endMs = null; // null: follows the newest moment
    this.cursorMs = null; // null: nothing is looked at
    this.nowMs = null; // the moment that a recording is at
    this.isPlanned = false;
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  /** Tell every time line once, before the next paint. */
  changed() {
    if (this.isPlanned) return;
    this.isPlanned = true;
    requestAnimationFrame(() => {
      this.isPlanned = false;
      for (const listener of this.listeners) listener();
    });
  }

  setExtent(firstMs, lastMs) {
    this.first = firstMs;
    this.last = Math.max(lastMs, firstMs + SHORTEST_MS);
    // What was chosen before there was a figure, or of a time that is forgotten, becomes the newest.
    const isOutside = (ms) => ms !== null && (ms < this.first || ms > this.last);
    if (isOutside(this.cursorMs)) this.cursorMs = this.last;
    if (isOutside(this.endMs)) this.endMs = null;
    this.changed();
  }

  range() {
    const whole = this.last - this.first;
    // A stretch that is longer than what is known would be empty on its left.
    const span = this.spanMs === null ? whole : Math.min(Math.max(this.spanMs, SHORTEST_MS), Math.max(whole, FILLED_MS));
    const end = this.endMs === null ? this.last : this.endMs;
    return { fromMs: end - span, toMs: end };
  }

  /** The newest `spanMs`, following; null shows everything. */
  showNewest(spanMs) {
    this.spanMs = spanMs;
    this.endMs = null;
    this.changed();
  }

  select(fromMs, toMs) {
    const whole = this.last - this.first;
    const span = Math.min(Math.max(toMs - fromMs, SHORTEST_MS), whole);
    const end = Math.min(Math.max(toMs, this.first + span), this.last);
    this.spanMs = span >= whole ? null : span;
    this.endMs = end >= this.last ? null : end;
    this.changed();
  }

  /** Show `factor` times as much, keeping one moment where it is. */
  zoom(factor, aroundMs = null) {
    const { fromMs, toMs } = this.range();
    const fixed = aroundMs ?? this.cursorMs ?? toMs;
    this.select(fixed - (fixed - fromMs) * factor, fixed + (toMs - fixed) * factor);
  }

  look(atMs) {
    const { fromMs, toMs } = this.range();
    this.cursorMs = atMs === null ? null : Math.min(Math.max(atMs, fromMs), toMs);
    this.changed();
  }

  /** Move what is looked at by a share of the visible stretch; the stretch follows at its ends. */
  step(share) {
    const { fromMs, toMs } = this.range();
    const span = toMs - fromMs;
    const wanted = (this.cursorMs ?? toMs) + share * span;
    if (wanted < fromMs) this.select(Math.max(wanted, this.first), Math.max(wanted, this.first) + span);
    else if (wanted > toMs) this.select(Math.min(wanted, this.last) - span, Math.min(wanted, this.last));
    this.look(wanted);
  }
}
