// Figures from the server: asks the API, and is told by its stream of events when there is news.

import { addressOf, decoded } from "./address.js";

const SILENCE_MS = 3_000;
const PATIENCE_MS = 8_000;

export class LiveSource {
  constructor() {
    this.isRecorded = false;
  }

  /** `news` is called when something may have changed: with the newest status, or with nothing. */
  async start(news) {
    await this.signIn();
    let heardMs = 0;
    const heard = (event) => {
      heardMs = performance.now();
      if (!document.hidden) news(event.type === "summary" ? JSON.parse(event.data) : null);
    };
    this.listen(heard);
    setInterval(() => {
      if (document.hidden || performance.now() - heardMs <= SILENCE_MS) return;
      news(null); // without the stream, or when it is silent, the page asks by itself
      if (this.stream.readyState === EventSource.CLOSED) this.listen(heard);
    }, SILENCE_MS);
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) {
        this.stream.close(); // nobody looks: nothing is asked for
        return;
      }
      this.listen(heard);
      news(null);
    });
    news(null);
  }

  listen(heard) {
    this.stream?.close();
    this.stream = new EventSource("v1/events");
    for (const name of ["summary", "decision", "gone"]) this.stream.addEventListener(name, heard);
  }

  /** A token behind the # of the address becomes a cookie, and leaves the address. */
  async signIn() {
    const found = /^#token=(.+)$/.exec(location.hash);
    if (!found) return;
    history.replaceState(null, "", `${location.pathname}${location.search}`);
    const token = decoded(found[1]);
    await fetch("v1/session", { headers: { Authorization: `Bearer ${token}` } }).catch(() => {});
  }

  /** The answer, or null when there is no such thing. Throws when the server does not answer. */
  async ask(path, parameters = {}) {
    const answer = await fetch(addressOf(path, parameters).slice(1), {
      headers: { Accept: "application/json" },
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (answer.status === 404) return null;
    const data = await answer.json().catch(() => ({ error: true }));
    if (answer.ok && !data.error) return data;
    const failure = new Error(data.message ?? `The server answers with ${answer.status}.`);
    failure.isAnswer = true; // the server is there, and says what is wrong
    failure.code = data.code;
    throw failure;
  }
}
