// Plays a recording: a button, a slider over its time, and how quickly it passes.

import { clockText, durationText } from "./format.js";
import { byId, make, optionsOf, setAttribute, setText } from "./elements.js";
import { SPEEDS } from "./recorded_source.js";

export function startReplay(source) {
  const host = byId("replay");
  const play = make("button", { type: "button", id: "replay-play", on: { click: () => source.play(!source.isPlaying) } });
  const slider = make("input", {
    type: "range", id: "replay-slider", min: 0, max: source.lastMs - source.firstMs, step: 250, "aria-label": "Moment of the run",
  });
  const time = make("span", { class: "replay-time" });
  const speed = make("select", { "aria-label": "How quickly it is played" }, optionsOf(SPEEDS.map((one) => [one, `${one} ×`])));
  speed.value = String(source.speed);
  slider.addEventListener("input", () => {
    const passed = Number(slider.value); // pausing shows the present moment in the slider again
    source.play(false);
    source.goTo(source.firstMs + passed);
  });
  speed.addEventListener("input", () => {
    source.speed = Number(speed.value);
  });
  host.append(play, slider, time, speed);
  host.hidden = false;
  const show = () => {
    const passed = source.atMs - source.firstMs;
    setText(play, source.isPlaying ? "Pause" : "Play");
    slider.value = String(passed);
    const passedText = durationText(passed / 1000);
    const words = source.isSimulated ? passedText : `${passedText} · ${clockText(source.atMs)}`;
    setText(time, words);
    setAttribute(slider, "aria-valuetext", words);
  };
  source.onMove(show);
  show();
}
