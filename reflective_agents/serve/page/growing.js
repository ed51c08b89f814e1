// A tree that grows by the events of a run, in the form in which the viewer draws it, and what of it is new.

const EMPTY_NODE = {
  messages: [], thought: "", action: "", observation: "", critique: "", score: null, reward: null, terms: {},
  solved: false, done: false, samples: 1, model: "",
};
const EMPTY_FRAME = { node: null, added: [], merged: 0, pruned: [], reflection: "", calls: 0, tokens: 0 };

class Growing {
  /** `drawn` is what the server knows of the tree so far, after so many events; null if there is none. */
  constructor(drawn, events, question) {
    this.picture = drawn ?? {
      strategy: "", question, conversation: [], answer: null, outcome: null, usage: {}, weight: null,
      aggregate: "mean", nodes: {}, frames: [], path: [], reflections: [],
    };
    this.seen = events;
    this.added = [];
    this.#anew();
  }

  /** Whether there is anything to draw. */
  get begun() {
    return Object.keys(this.picture.nodes).length > 0;
  }

  /** What has changed since this was asked for the last time, as the viewer takes it in: at first, and if `all` is
   * asked for, everything. */
  news(all = false) {
    if (all) this.from = 0;
    const { nodes, frames, ...rest } = this.picture;
    const changed = this.from ? Object.fromEntries([...this.changed].map((id) => [id, nodes[id]])) : nodes;
    const news = { ...rest, nodes: changed, frames: frames.slice(this.from), from: this.from };
    this.changed.clear();
    this.from = frames.length;
    return news;
  }

  /** Forget what was told of the tree: all of it is new. */
  #anew() {
    this.from = 0;
    this.changed = new Set();
  }

  /** Take in an event; those that are known already are passed over. Returns whether the tree has changed. */
  take(event) {
    if (!event.seq || event.seq <= this.seen) return false;
    this.seen = event.seq;
    const spent = COST.filter((name) => event[name] !== undefined).map((name) => [name, event[name]]);
    this.picture.usage = { ...this.picture.usage, ...Object.fromEntries(spent) };
    const grows = GROWS.has(event.event);
    if (grows) this[`_${event.event}`](event);
    return grows;
  }

  _begin() {
    Object.assign(this.picture, { nodes: {}, frames: [], path: [], reflections: [], answer: null, outcome: null });
    this.added = [];
    this.#anew();
  }

  _node(event) {
    const { seq, event: _, expansions, does, ...fields } = event;
    const known = Object.fromEntries(Object.entries(fields).filter(([name]) => name in EMPTY_NODE || NODE.has(name)));
    this.picture.nodes[event.id] = { ...EMPTY_NODE, ...known, action: does ?? "" };
    this.changed.add(event.id);
    this.added.push(event.id);
    if (event.parent_id === null) this.#frame("start", event.id, {}, event);
  }

  _judged(event) {
    const node = this.picture.nodes[event.id];
    if (!node) return;
    Object.assign(node, { score: event.score, solved: event.solved });
    this.changed.add(event.id);
  }

  _visited(event) {
    const stats = Object.fromEntries(Object.entries(event.stats).map(([id, own]) => [id, figures(own)]));
    if (event.kind === "rescore") Object.assign(this.#last().stats, stats);
    else this.#frame(event.kind, event.node, stats, event);
  }

  _pruned(event) {
    this.#last().pruned.push(event.node);
  }

  _reflected(event) {
    this.picture.reflections.push({ node: event.node, text: event.lesson });
    this.#last().reflection = event.lesson;
  }

  _steered(event) {
    this.#frame(event.kind, event.node ?? null, {}, {});
  }

  #frame(kind, node, stats, { calls = 0, tokens = 0 }) {
    const { nodes, frames } = this.picture;
    const first = Object.fromEntries(this.added.map((id) => [id, firstFigures(nodes[id])]));
    const frame = { number: frames.length, event: kind, node, added: this.added, calls, tokens };
    frames.push({ ...EMPTY_FRAME, pruned: [], ...frame, stats: { ...first, ...stats } });
    this.added = [];
  }

  #last() {
    if (!this.picture.frames.length) this.#frame("start", null, {}, {});
    this.from = Math.min(this.from, this.picture.frames.length - 1);
    return this.picture.frames.at(-1);
  }
}

const COST = ["model_calls", "total_tokens", "seconds", "cost"];
const GROWS = new Set(["begin", "node", "judged", "visited", "pruned", "reflected", "steered"]);
const NODE = new Set(["id", "parent_id", "depth", "kind"]);

function figures([visits, total]) {
  return { visits, total, closed: false };
}

/** The figures of a new node: its own score is the first value that it sees. */
function firstFigures(node) {
  const prior = node.terms.r0;
  if (prior !== undefined) return { visits: 0, total: 0, closed: false, prior };
  return figures(node.score === null ? [0, 0] : [1, node.score]);
}
