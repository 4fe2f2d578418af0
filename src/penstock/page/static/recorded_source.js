// Figures from a recording inside the page: the same answers as the server's, at the moment that the
// slider shows. What the recording has no answer for is made of what it has, or is unknown.

import { addressOf } from "./address.js";
import { partitionName } from "./topics.js";

const TICK_MS = 250;
// How much quicker than it was a run can be played; at first so that it takes a minute at most.
export const SPEEDS = [1, 4, 16, 60, 240];
const PLAYED_MS = 60_000;

/** The place of the newest frame that is not after `atMs`; the first one when all are later. */
function frameAt(frames, atMs) {
  let low = 0;
  let high = frames.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (frames[middle].at_unix_ms <= atMs) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

export class RecordedSource {
  constructor(recording) {
    this.recording = recording;
    this.frames = recording.frames;
    this.isRecorded = true;
    this.isSimulated = recording.is_simulated === true;
    this.isPlaying = false;
    this.firstMs = this.frames[0].at_unix_ms;
    this.lastMs = this.frames.at(-1).at_unix_ms;
    this.speed = SPEEDS.find((one) => (this.lastMs - this.firstMs) / one <= PLAYED_MS) ?? SPEEDS.at(-1);
    this.atMs = this.lastMs;
    this.place = this.frames.length - 1;
    this.listeners = [];
  }

  async start(news) {
    this.news = news;
    setInterval(() => this.tick(), TICK_MS);
    news(null);
  }

  onMove(listener) {
    this.listeners.push(listener);
  }

  tick() {
    if (!this.isPlaying || document.hidden) return;
    this.goTo(this.atMs + TICK_MS * this.speed);
    if (this.atMs >= this.lastMs) this.play(false);
  }

  play(isPlaying) {
    if (isPlaying && this.atMs >= this.lastMs) this.goTo(this.firstMs);
    this.isPlaying = isPlaying;
    for (const listener of this.listeners) listener();
  }

  goTo(atMs) {
    this.atMs = Math.min(Math.max(atMs, this.firstMs), this.lastMs);
    const place = frameAt(this.frames, this.atMs);
    const isNew = place !== this.place;
    this.place = place;
    for (const listener of this.listeners) listener();
    if (isNew) this.news(null);
  }

  get frame() {
    return this.frames[this.place];
  }

  stored(address) {
    return this.frame.answers[address] ?? this.recording.answers[address] ?? null;
  }

  async ask(path, parameters = {}) {
    const [kind, ...rest] = path.split("/").map(decodeURIComponent);
    if (kind === "history") return this.history();
    const atEnd = this.place === this.frames.length - 1 ? this.recording.answers[addressOf(path, {})] : null;
    if (rest.length && atEnd) return atEnd; // with offsets and backlogs, which the frames do not have
    if (kind === "consumers" && rest.length) return this.consumer(rest[0]);
    if (kind === "partitions") return rest.length ? this.partition(rest[0], Number(rest[1])) : this.partitions(parameters);
    if (kind === "consumers") return this.stored("/v1/consumers?with=partitions") ?? this.stored("/v1/consumers");
    if (kind === "timeline") return this.timeline(parameters.topic);
    if (kind === "plan" && this.place < this.frames.length - 1) return null; // it was made at the end
    return this.stored(addressOf(path, parameters)) ?? this.stored(`/v1/${path}?with=partitions`) ?? this.stored(`/v1/${path}`);
  }

  /** The whole run; of one topic alone, where the recording does not tell its consumers apart. */
  timeline(topic) {
    const whole = this.stored("/v1/timeline");
    if (!topic) return whole;
    return this.stored(addressOf("timeline", { topic })) ?? { ...whole, timeline: { ...whole.timeline, by_consumer: [] } };
  }

  /** What had been decided until now. */
  decisions() {
    const kept = this.recording.answers["/v1/history"]?.history ?? [];
    return kept.filter((one) => one.first_unix_ms <= this.atMs + 500);
  }

  history() {
    const found = this.decisions();
    return { ...this.head(), total: found.length, history: found };
  }

  head() {
    return { error: false, snapshot: this.stored("/v1/status")?.snapshot };
  }

  /** The partitions of this moment, with what the bars know of them. */
  rows() {
    const answer = this.stored("/v1/consumers?with=partitions") ?? { consumers: [], without_consumer: [] };
    const owned = answer.consumers.flatMap((row) => (row.segments ?? []).map((one) => ({ ...one, consumer: row.consumer })));
    const unread = answer.without_consumer.map((one) => ({ ...one, consumer: null }));
    const unknown = {
      behind_records: null, behind_s: null, behind_is_at_most: false, start_offset: null, next_offset: null, end_offset: null,
    };
    const isEnd = this.place === this.frames.length - 1;
    const atEnd = isEnd ? this.recording.answers["/v1/partitions"]?.partitions ?? [] : [];
    const details = new Map(atEnd.map((one) => [partitionName(one), one]));
    return [...owned, ...unread].map((one) =>
      details.get(partitionName(one)) ?? { ...unknown, write_speed_bytes_per_s: one.load_bytes_per_s, ...one });
  }

  partitions({ topic, state, sort, limit, after }) {
    const sign = sort.startsWith("-") ? -1 : 1;
    const figure = { name: null, speed: "load_bytes_per_s", behind: "behind_records", consumer: "consumer" }[sort.replace("-", "")];
    const key = (one) => (figure ? one[figure] ?? -1 : 0);
    const rows = this.rows()
      .filter((one) => (!topic || one.topic === topic) && (!state || one.state === state || one.marks.includes(state)))
      .sort((a, b) => sign * (key(a) - key(b)) || a.topic.localeCompare(b.topic) || a.partition - b.partition);
    const begin = Number(after ?? 0);
    const next = begin + limit < rows.length ? String(begin + limit) : null;
    return { ...this.head(), total: rows.length, next, partitions: rows.slice(begin, begin + limit) };
  }

  /** A figure of every frame until now, and who had it: the story as the frames tell it. */
  storyOf(rowOf, figures) {
    const recent = { at_unix_ms: [], ...Object.fromEntries(Object.keys(figures).map((name) => [name, []])) };
    const changes = [];
    for (const frame of this.frames.slice(0, this.place + 1)) {
      const row = rowOf(frame.answers["/v1/consumers?with=partitions"]);
      recent.at_unix_ms.push(frame.at_unix_ms);
      for (const [name, figureOf] of Object.entries(figures)) recent[name].push(row ? figureOf(row) ?? null : null);
      const state = row?.state ?? "gone";
      const consumer = row?.consumer ?? null;
      const last = changes.at(-1);
      if (last && last.state === state && last.consumer === consumer) continue;
      if (last) last.to_unix_ms = frame.at_unix_ms;
      changes.push({ from_unix_ms: frame.at_unix_ms, to_unix_ms: null, consumer, state });
    }
    return { changes, recent };
  }

  partition(topic, number) {
    const row = this.rows().find((one) => one.topic === topic && one.partition === number);
    if (!row) return null;
    const isIt = (one) => one.topic === topic && one.partition === number;
    const story = this.storyOf((answer) => {
      for (const one of answer?.consumers ?? []) {
        const found = one.segments?.find(isIt);
        if (found) return { ...found, consumer: one.consumer };
      }
      return answer?.without_consumer.find(isIt);
    }, { write_speed_bytes_per_s: (one) => one.load_bytes_per_s, behind_records: () => null });
    const history = this.decisions().filter((one) => one.sentence.includes(partitionName(row)));
    return { ...this.head(), partition: row, story, history };
  }

  consumer(number) {
    const isIt = (one) => String(one.consumer) === String(number);
    const row = this.stored("/v1/consumers?with=partitions")?.consumers.find(isIt) ?? null;
    const story = this.storyOf((answer) => answer?.consumers.find(isIt), {
      load_bytes_per_s: (one) => one.load_bytes_per_s,
      carried_bytes_per_s: (one) => one.carried_bytes_per_s,
      behind_records: (one) => one.behind_records,
    });
    if (!row && story.changes.every((one) => one.state === "gone")) return null;
    const named = new RegExp(`consumers? (?:\\d+(?:, | and ))*${Number(number)}(?!\\d|[.,]\\d)`);
    return { ...this.head(), consumer: row, story, history: this.decisions().filter((one) => named.test(one.sentence)) };
  }
}
