// The group at a glance: what is not well, what the controller does now and why, and its figures.

import { countText, counted, durationText, shareText, shortenedList, sizeText, speedText } from "./format.js";
import { byId, make, matchChildren, setAttribute, setText } from "./elements.js";

// Conditions that say something about the load, not that something is broken.
const WARNINGS = new Set(["over capacity", "oversize", "at maximum", "held", "unsaved"]);
const PHASES = {
  Synchronize: "Synchronising",
  Sentinel: "Watching",
  Reassign: "Packing",
  "Group Management": "Moving partitions",
  Superseded: "Superseded",
};

export function showConditions(conditions) {
  matchChildren(
    byId("conditions"),
    conditions,
    (one) => `${one.condition} ${one.reason}`,
    (one) =>
      make("div", { class: "condition", data: { kind: WARNINGS.has(one.condition) ? "warn" : "danger" } },
        make("span", { class: "condition-name" }, one.condition), make("p", {}, one.reason)),
    () => {},
  );
}

export function showDoing(status) {
  const { controller, now } = status;
  const isWell = status.is_well;
  setText(byId("doing-phase"), PHASES[controller.phase] ?? controller.phase);
  const why = now.why ? ` Why: ${now.why}.`.replace("..", ".") : "";
  const pauses = (status.pauses ?? []).map((pause) => ` Paused (${pause.direction}): ${pause.reason || "no reason given"}.`);
  const rollOut = status.roll_out ? ` Rolling out version ${status.roll_out.version}.` : "";
  const progress = status.progress ?? "all is well";
  const words = isWell ? ` ${progress[0].toUpperCase()}${progress.slice(1)}.` : "";
  setText(byId("doing-words"), `${now.sentence}${why}${rollOut}${pauses.join("")}${words}`);
  const phase = (PHASES[controller.phase] ?? controller.phase).toLowerCase();
  setText(byId("doing-numbers"), [
    `plan ${controller.plan}`, `epoch ${controller.epoch}`, controller.algorithm, `${phase} for ${durationText(controller.phase_for_s)}`,
  ].join(" · "));
}

/** The six figures. What is unknown says so, and is never 0. */
function tilesOf(status) {
  const { speed, backlog, consumers, partitions, moves } = status;
  const atMost = backlog.is_at_most ? "at most " : "";
  const longest = backlog.longest;
  const [freshness, atLeast] = [status.freshness_s ?? null, status.freshness_at_least_s ?? null];
  const isFreshness = freshness !== null || atLeast !== null;
  const waited = freshness !== null ? durationText(freshness) : `at least ${durationText(atLeast)}`;
  const states = [
    [consumers.starting, "starting"], [consumers.ending, "ending"], [consumers.idle, "idle"],
  ].filter(([count]) => count).map(([count, word]) => `${count} ${word}`);
  const special = ["stopped", "unread", "oversize", "hot"].filter((word) => partitions[word]).map((word) => `${partitions[word]} ${word}`);
  const open = moves.open ? [`${counted(moves.open, "move")} open`] : [];
  const carries = speed.carried_bytes_per_s;
  const share = carries === null || !speed.written_bytes_per_s ? null : carries / speed.written_bytes_per_s;
  return [
    { id: "written", label: "Written", value: speedText(speed.written_bytes_per_s),
      note: speed.measurement_age_s === null ? "not measured yet" : `measured ${durationText(speed.measurement_age_s)} ago` },
    { id: "carried", label: "Carried to the lake", value: speedText(carries),
      note: share === null ? "not known yet" : `${shareText(share)} of what is written` },
    { id: "behind", label: isFreshness ? "Freshness" : "Behind",
      value: isFreshness ? waited : `${atMost}${durationText(backlog.seconds)}`,
      note: `${atMost}${counted(backlog.records, "record")}, ${sizeText(backlog.bytes)}${
        backlog.left_s ? `; catching up, about ${durationText(backlog.left_s)} left` : ""}` },
    { id: "longest", label: "Longest wait", value: longest ? durationText(longest.seconds) : "unknown",
      note: longest ? longest.partition : "no partition is behind" },
    { id: "consumers", label: "Consumers", value: countText(consumers.running),
      note: [`needed ${consumers.needed === null ? "unknown" : countText(consumers.needed)}`,
        `fewest possible ${consumers.fewest_possible === null ? "unknown" : countText(consumers.fewest_possible)}`, ...states].join(", ") },
    { id: "partitions", label: "Partitions", value: countText(partitions.total),
      tone: partitions.stopped + partitions.unread ? "danger" : "",
      note: shortenedList([...open, ...special], 4) || "all read, none moves" },
  ];
}

/** A simulation has no lake: it shows what it knows. */
export function showTiles(status, isSimulated) {
  const known = ["written", "consumers", "partitions"];
  matchChildren(
    byId("tiles"),
    tilesOf(status).filter((tile) => !isSimulated || known.includes(tile.id)),
    (tile) => tile.id,
    (tile) => make("div", { class: "tile", data: { tile: tile.id } },
      make("p", { class: "tile-label" }), make("p", { class: "tile-value" }), make("p", { class: "tile-note" })),
    (element, tile) => {
      setText(element.children[0], tile.label);
      setText(element.children[1], tile.value);
      setText(element.children[2], tile.note);
      setAttribute(element, "data-tone", tile.tone || null);
    },
  );
}
