// The search as the page was given it, and what can be read from it at any moment of its history.
// A frame is a place in that history, counted from 0. Of a search that is still under way, what is new is taken in.

let picture, lastFrame, onPath, nodes, root;
/** What the search had cost after each frame. */
let spent;
/** The highest worth of a node so far at each frame; null before the first. */
let bestSoFar;

/** Take a search in; or, of one that is known, what has changed: some nodes, and the frames `from` one on. */
function take({ nodes: changed, frames, from = 0, ...rest }) {
  if (!from) {
    nodes = new Map();
    spent = [];
  }
  picture = { ...rest, frames: from ? [...picture.frames.slice(0, from), ...frames] : frames };
  lastFrame = picture.frames.length - 1;
  onPath = new Set(picture.path);
  takeNodes(Object.values(changed));
  for (let place = from; place <= lastFrame; place += 1) takeFrame(place);
  takeBest();
}

function takeNodes(changed) {
  const known = changed.map(({ id }) => nodes.has(id));
  for (const node of changed) {
    const before = nodes.get(node.id) ?? { children: [], born: lastFrame, prunedAt: Infinity, changes: [] };
    nodes.set(node.id, Object.assign(before, node, { line: undefined }));
  }
  changed.forEach(({ id, parent_id: above }, place) => {
    if (!known[place]) nodes.get(above)?.children.push(nodes.get(id));
    if (above === null) root = nodes.get(id);
  });
}

function takeFrame(place) {
  const frame = picture.frames[place];
  const before = spent[place - 1] ?? { calls: 0, tokens: 0 };
  spent[place] = { calls: before.calls + frame.calls, tokens: before.tokens + frame.tokens };
  for (const id of frame.added) nodes.get(id).born = place;
  for (const id of frame.pruned) nodes.get(id).prunedAt = place;
  for (const [id, stats] of Object.entries(frame.stats)) {
    const changes = nodes.get(id)?.changes;
    if (changes?.at(-1)?.place === place) changes.pop(); // a frame that is told again, as it is now
    changes?.push({ place, stats });
  }
}

function takeBest() {
  bestSoFar = Array(lastFrame + 1).fill(null);
  for (const node of nodes.values()) {
    const first = node.changes.find((change) => change.stats.visits);
    // What was never visited was worth the same from the beginning.
    node.visited = first !== undefined;
    const place = first?.place ?? node.born;
    if (worth(node) !== null) bestSoFar[place] = Math.max(bestSoFar[place] ?? 0, worth(node));
  }
  bestSoFar.forEach((best, place) => {
    const before = bestSoFar[place - 1] ?? null;
    if (best === null || before > best) bestSoFar[place] = before;
  });
}

/** What a node is worth by itself: the environment's reward, else the judge's score, else null. */
function worth(node) {
  return node.reward ?? node.score;
}

/** What the search knows of a node at a frame; undefined before it knows anything. */
function statsAt(node, frame) {
  let low = 0;
  let high = node.changes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (node.changes[middle].place <= frame) low = middle + 1;
    else high = middle;
  }
  return node.changes[low - 1]?.stats;
}

/** N, Q and UCT of a node at a frame. Before the first visit Q is the prior, or null; a prior counts as one visit. */
function figuresAt(node, frame) {
  const own = statsAt(node, frame);
  const above = nodes.get(node.parent_id);
  const n = own?.visits ?? 0;
  const seen = picture.aggregate === "max" ? own?.best : own?.total / n;
  const q = (n ? seen : own?.prior) ?? null;
  const parentVisits = above ? (statsAt(above, frame)?.visits ?? 0) : 0;
  const selects = above && picture.weight !== null && q !== null;
  const bonus = picture.weight * Math.sqrt(Math.log(Math.max(parentVisits, 1)) / Math.max(n, 1));
  return { n, q, uct: selects ? q + bonus : null, parentVisits, closed: own?.closed ?? false };
}

/** The nodes from the root down to one. */
function pathTo(node) {
  const above = nodes.get(node.parent_id);
  return above ? [...pathTo(above), node] : [node];
}

/** How many nodes lie below one at a frame. */
function countBelow(node, frame) {
  let count = 0;
  const waiting = [...node.children];
  while (waiting.length) {
    const next = waiting.pop();
    if (next.born > frame) continue;
    count += 1;
    waiting.push(...next.children);
  }
  return count;
}

/** What is to be said of a node in a word each. */
function marksOf(node, frame) {
  const holds = {
    solved: node.solved,
    pruned: node.prunedAt <= frame,
    "on the chosen path": onPath.has(node.id),
    closed: figuresAt(node, frame).closed,
  };
  return Object.keys(holds).filter((mark) => holds[mark]);
}

/** What a node says or does, on one line: the beginning of it, without characters that cannot be seen. */
function lineOf(node) {
  return (node.line ??= lineMade(node));
}

function lineMade(node) {
  const message = node.messages.find((message) => message.content)?.content ?? "";
  const question = node === root ? picture.question : "";
  const text = node.kind === "action" ? node.action || message : message || node.action;
  return (text || node.thought || node.observation || question)
    .slice(0, 400)
    .replace(/[\p{C}\p{Z}]+/gu, " ")
    .trim();
}
