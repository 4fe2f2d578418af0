// One tone for each topic: the same in the bars, the time lines and the plan.

const TONES = 10;

export class TopicTones {
  constructor() {
    this.tones = new Map();
  }

  /** Topics get their tones in the order in which they come: pass them sorted at first. */
  learn(topics) {
    for (const topic of topics) {
      if (!this.tones.has(topic)) this.tones.set(topic, this.tones.size % TONES);
    }
  }

  of(topic) {
    this.learn([topic]);
    return this.tones.get(topic);
  }
}

export function partitionName(one) {
  return `${one.topic}-${one.partition}`;
}
