// Begins the page: finds out where its figures come from, and shows the view that the address names.

import { decoded } from "./address.js";
import { countTimesFrom, durationText } from "./format.js";
import { byId, setAttribute, setText } from "./elements.js";
import { DecisionsView } from "./decisions.js";
import { GroupView } from "./group_view.js";
import { LiveSource } from "./live_source.js";
import { PartitionsView } from "./partitions.js";
import { PlanView } from "./plan_view.js";
import { RecordedSource } from "./recorded_source.js";
import { startReplay } from "./replay.js";
import { StoryPanel } from "./stories.js";
import { TablesView } from "./tables_view.js";
import { startTheme } from "./theme.js";
import { TopicTones } from "./topics.js";

const VIEWS = ["group", "partitions", "decisions", "plan", "tables"];
const PERIODS_MS = { partitions: 2_000, decisions: 5_000, plan: 5_000, tables: 30_000, panel: 2_000 };
const OLD_S = 5;

class Page {
  constructor(source) {
    this.source = source;
    this.tones = new TopicTones();
    const open = (kind, name) => this.open(kind, name);
    this.group = new GroupView(source, this.tones, open);
    this.partitions = new PartitionsView(byId("view-partitions"), source, open);
    this.decisions = new DecisionsView(byId("view-decisions"));
    this.plan = new PlanView(byId("view-plan"), source, this.tones, open);
    this.tables = new TablesView(byId("view-tables"), source, open);
    this.panel = new StoryPanel(source, open, () => this.close());
    this.asked = {};
    this.route = { view: "group" };
  }

  start() {
    addEventListener("hashchange", () => this.follow());
    byId("skip").addEventListener("click", (event) => {
      event.preventDefault();
      byId("main").focus();
    });
    setInterval(() => this.showAge(), 1000);
    if (this.source.isRecorded) {
      if (this.source.isSimulated) this.showSimulated();
      startReplay(this.source);
      this.group.showResults(this.source.recording);
      this.group.times.view.showNewest(null);
    }
    this.showRoute();
    this.source.start((event) => this.news(event));
  }

  /** No group ran: times are counted from the begin, and what nobody measured is left out. */
  showSimulated() {
    countTimesFrom(this.source.firstMs);
    this.group.times.leaveOutBacklog();
    for (const link of byId("tabs").children) link.hidden = link.dataset.view === "tables";
  }

  follow() {
    this.showRoute();
    this.news(null);
  }

  /** `#/partitions` is a view, `#/partitions/partition/orders-3` a story beside it. */
  showRoute() {
    const [, view, kind, name] = location.hash.split("/");
    const wanted = VIEWS.includes(view) ? view : "group";
    this.asked = {};
    this.route = { view: wanted, kind, name: name === undefined ? undefined : decoded(name) };
    for (const one of VIEWS) byId(`view-${one}`).hidden = one !== wanted;
    for (const link of byId("tabs").children) setAttribute(link, "aria-current", link.dataset.view === wanted ? "page" : null);
    if (!kind) this.panel.hide();
  }

  open(kind, name) {
    location.hash = `#/${this.route.view}/${kind}/${encodeURIComponent(name)}`;
  }

  close() {
    location.hash = `#/${this.route.view}`;
  }

  /** Show what is new; one round at a time, and one more when news came meanwhile. */
  async news(event) {
    if (this.isBusy) {
      this.isWaiting = true;
      if (event) this.newest = event;
      return;
    }
    this.isBusy = true;
    try {
      await this.round(event);
    } catch (error) {
      this.failed(error);
    }
    this.isBusy = false;
    if (this.isWaiting) {
      this.isWaiting = false;
      const next = this.newest ?? null;
      this.newest = null;
      this.news(next);
    }
  }

  async round(event) {
    const answer = event ?? (await this.source.ask("status"));
    this.received(answer);
    this.group.showStatus(answer.status);
    await this.learnTones();
    const { view, kind, name } = this.route;
    const newest = answer.status.controller.plan;
    const hasDecision = event === null || newest !== this.plan_number;
    this.plan_number = newest;
    if (view === "group") await this.group.refresh(hasDecision);
    else await this.refreshView(view);
    if (kind && this.due("panel")) await this.panel.show(kind, name);
  }

  /** Topics have the same tones in every view, whichever is opened first. */
  async learnTones() {
    if (this.hasTones) return;
    const answer = await this.source.ask("topics");
    this.tones.learn((answer?.topics ?? []).map((one) => one.topic));
    this.hasTones = true;
  }

  due(what) {
    const now = performance.now();
    if (!this.source.isRecorded && now - (this.asked[what] ?? -Infinity) < PERIODS_MS[what]) return false;
    this.asked[what] = now;
    return true;
  }

  async refreshView(view) {
    if (!this.due(view)) return;
    if (view === "partitions") {
      const topics = await this.source.ask("topics");
      if (topics) this.partitions.learnTopics(topics.topics.map((one) => one.topic));
      await this.partitions.refresh();
    } else if (view === "decisions") {
      const answer = await this.source.ask("history", { limit: 1000 });
      this.decisions.show(answer?.history ?? []);
    } else if (view === "plan") await this.plan.refresh(this.group.isLarge);
    else await this.tables.refresh();
  }

  received({ snapshot }) {
    this.snapshot = snapshot;
    this.receivedMs = performance.now();
    this.failure = null;
    setText(byId("group-name"), snapshot.group ?? "");
    byId("group-name").hidden = !snapshot.group;
    document.title = snapshot.group ? `${snapshot.group} · Penstock` : "Penstock";
    this.showAge();
  }

  failed(error) {
    this.failure = error.isAnswer ? error.message : "The server of this page does not answer.";
    if (!error.isAnswer && !(error instanceof TypeError) && error.name !== "TimeoutError" && error.name !== "AbortError") {
      this.failure = `The page failed: ${error.message}`;
      console.error(error);
    }
    this.showAge();
  }

  /** Whether the figures are live, and how old they are when they are not. */
  showAge() {
    const age = this.snapshot ? this.snapshot.age_s + (performance.now() - this.receivedMs) / 1000 : null;
    const lost = byId("lost");
    const link = byId("link");
    if (this.source.isRecorded) {
      setAttribute(link, "data-state", "recorded");
      setText(link, this.source.isSimulated ? "simulated run" : "recorded run");
      return;
    }
    const isOld = age !== null && (this.snapshot.is_stale || age > OLD_S);
    const silence = isOld ? this.snapshot.silence ?? "There is no news from the group." : "";
    const words = this.failure ?? silence;
    lost.hidden = words === "";
    setText(byId("lost-words"), words);
    // Apart from the words: an age that grows is not read out every second.
    setText(byId("lost-age"), age === null ? "" : ` These figures are ${durationText(Math.round(age))} old.`);
    const state = this.failure ? "lost" : age === null ? "starting" : isOld ? "old" : "live";
    setAttribute(link, "data-state", state);
    const old = `${durationText(Math.round(age ?? 0))} old`;
    setText(link, { lost: age === null ? "no answer" : `lost, ${old}`, starting: "connecting", old, live: "live" }[state]);
  }
}

/** The run that is in this file; a large one is compressed. */
async function recordingIn(element) {
  if (element.type === "application/json") return JSON.parse(element.textContent);
  const packed = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
  const opened = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(opened).text());
}

async function begin() {
  const run = byId("penstock-run");
  const page = new Page(run ? new RecordedSource(await recordingIn(run)) : new LiveSource());
  startTheme(byId("theme"), () => {
    page.group.times.view.changed();
    page.panel.view?.changed();
  });
  page.start();
}

begin();
