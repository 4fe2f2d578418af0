// What is known of one table of the lake, as facts for its story.

import { ageText, countText, counted, dateText, durationText, sizeText } from "./format.js";
import { factList, make } from "./elements.js";

/** `healthy`, or what is wrong in words. */
export function healthWord(one) {
  const [tone, word] = one.is_healthy ? ["good", "healthy"] : ["warn", "needs care"];
  const problems = one.problems.map((problem) => make("p", { class: "note" }, problem));
  return make("div", {}, make("span", { class: "word", data: { tone } }, word), problems);
}

/** `3 min ago`, counted from the moment at which the tables were read. */
export function agoText(unixMs, readMs) {
  return unixMs === null ? "unknown" : `${ageText(Math.max(0, readMs - unixMs) / 1000)} ago`;
}

export function tableFacts(one, readMs) {
  const done = one.compaction;
  const oldest = one.oldest_checkpoint_version;
  return factList([
    ["Health", healthWord(one)],
    ["Version", countText(one.version)],
    ["Records", countText(one.records)],
    ["Size", sizeText(one.bytes)],
    ["Files", countText(one.files)],
    ["Small files", `${countText(one.small_files)} below a quarter of ${sizeText(one.file_size_target_bytes)}`],
    ["Mean file", one.mean_file_bytes === null ? "no file yet" : sizeText(one.mean_file_bytes)],
    ["Newest file", agoText(one.newest_file_unix_ms, readMs)],
    ["Log since the newest checkpoint", counted(one.entries_since_checkpoint, "version")],
    ["Versions in the log", countText(one.log_entries)],
    ["Oldest checkpoint", oldest === null ? "none yet"
      : `at version ${countText(oldest)}, ${agoText(one.oldest_checkpoint_unix_ms, readMs)}`],
    ["Compaction", done === null ? "never" : `${counted(done.joins, "join")}, the last ${agoText(done.last_unix_ms, readMs)}`],
    done === null ? null : ["Files it replaced", countText(done.files_replaced)],
    done === null ? null : ["Bytes it rewrote", sizeText(done.rewritten_bytes)],
    done === null ? null : ["Processor time it took", durationText(done.processor_s)],
    ["Read at", dateText(readMs)],
  ]);
}
