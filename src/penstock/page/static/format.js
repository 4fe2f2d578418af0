// Numbers, speeds, durations and times as people read them. The words are those of `penstock status`.

const SPEED_UNITS = [[1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]];
const SIZE_UNITS = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];
const TIME_UNITS = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]];
const UNKNOWN = "unknown";
// Between a figure and its unit: they stay on one line.
const JOIN = "\u00a0";

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

function unitOf(value, units) {
  return units.find(([size]) => Math.abs(value) >= size) ?? units.at(-1);
}

function figureText(value) {
  if (value >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
}

/** `120 kB/s`. */
export function speedText(bytesPerS) {
  if (!isNumber(bytesPerS)) return UNKNOWN;
  const [size, unit] = unitOf(bytesPerS, SPEED_UNITS);
  return `${figureText(bytesPerS / size)}${JOIN}${unit}`;
}

/** `120 of 100 kB/s`, `95 kB/s of 1 MB/s`: one unit where both have the same. */
export function speedOfText(bytesPerS, capacityBytesPerS) {
  if (!isNumber(bytesPerS) || !isNumber(capacityBytesPerS)) return speedText(bytesPerS);
  const [size, unit] = unitOf(capacityBytesPerS, SPEED_UNITS);
  const capacity = `${figureText(capacityBytesPerS / size)}${JOIN}${unit}`;
  if (bytesPerS < size * 0.1 && bytesPerS > 0) return `${speedText(bytesPerS)} of ${capacity}`;
  return `${figureText(bytesPerS / size)} of ${capacity}`;
}

/** `3.4 MB`. */
export function sizeText(bytes) {
  if (!isNumber(bytes)) return UNKNOWN;
  const [size, unit] = unitOf(bytes, SIZE_UNITS);
  return `${figureText(bytes / size)}${JOIN}${unit}`;
}

/** `1,204`. */
export function countText(count) {
  return isNumber(count) ? Math.round(count).toLocaleString("en") : UNKNOWN;
}

/** `1 move`, `2 moves`. */
export function counted(count, noun) {
  return `${countText(count)} ${count === 1 ? noun : `${noun}s`}`;
}

/** `62 %`. */
export function shareText(share) {
  return isNumber(share) ? `${Math.round(share * 100)}${JOIN}%` : UNKNOWN;
}

/** `4.2 s`, `45 s`, `38 min 23 s`, `2 h 5 min`, `3 d 4 h`. */
export function durationText(seconds) {
  if (!isNumber(seconds)) return UNKNOWN;
  const tenths = Math.round(Math.max(0, seconds) * 10) / 10;
  if (tenths < 10) return `${tenths}${JOIN}s`;
  const whole = Math.round(seconds);
  for (const [size, unit, nextSize, nextUnit] of TIME_UNITS) {
    if (whole >= size) {
      const rest = Math.floor((whole % size) / nextSize);
      return `${Math.floor(whole / size)}${JOIN}${unit}${rest ? ` ${rest}${JOIN}${nextUnit}` : ""}`;
    }
  }
  return `${whole}${JOIN}s`;
}

/** `3 min`, `2 h`: short, for the age of something that grows older while it is read. */
export function ageText(seconds) {
  if (!isNumber(seconds)) return UNKNOWN;
  for (const [size, unit] of TIME_UNITS) {
    if (seconds >= 2 * size) return `${Math.round(seconds / size)}${JOIN}${unit}`;
  }
  return `${Math.max(0, Math.round(seconds))}${JOIN}s`;
}

let countedFromMs = null;

function passedText(seconds) {
  const parts = [seconds / 3600, (seconds / 60) % 60, seconds % 60];
  return parts.map((part) => String(Math.floor(part)).padStart(2, "0")).join(":");
}

/** From now on times are shown as what has passed since then: a simulation has no time of day. */
export function countTimesFrom(unixMs) {
  countedFromMs = unixMs;
}

/** `14:03:27`, in the reader's own time zone; in a simulation what has passed, in the same form. */
export function clockText(unixMs) {
  if (!isNumber(unixMs)) return UNKNOWN;
  if (countedFromMs !== null) return passedText(Math.round((unixMs - countedFromMs) / 1000));
  return new Date(unixMs).toLocaleTimeString("en-GB");
}

/** `17 Nov, 14:03:27`. */
export function dateText(unixMs) {
  if (!isNumber(unixMs) || countedFromMs !== null) return clockText(unixMs);
  const day = new Date(unixMs).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return `${day}, ${clockText(unixMs)}`;
}

/** A word for programs as words for people: `over_capacity` becomes `over capacity`. */
export function wordsOf(code) {
  return String(code ?? "").replaceAll("_", " ");
}

/** Words as a sentence: `Nothing moves.`; empty where there are none. */
export function sentenceOf(words) {
  return words ? `${words[0].toUpperCase()}${words.slice(1)}.` : "";
}

/** The first few names, and how many more there are: `a, b and 3 more`. */
export function shortenedList(names, most = 5) {
  const more = names.length - most;
  return names.slice(0, most).join(", ") + (more > 0 ? ` and ${countText(more)} more` : "");
}
