// Puts the parts together: what is selected, what is folded, which frame is shown, and what keys and buttons do.

const tree = document.getElementById("tree");
const panel = document.getElementById("panel");
const help = document.getElementById("help");
const camera = new Camera(tree, document.getElementById("world"));
const drawing = new Drawing(document.getElementById("links"), document.getElementById("nodes"));
const fits = (places) => camera.scaleFor(extent(places)) >= READABLE;

let player, folded, places;
/** The node that was chosen; `selected` is the nearest above it that is to be seen at this moment. */
let chosen, selected;
/** Whether somebody has folded, or selected, something: what grows then leaves it alone. */
let folds = false;
let chooses = false;
/** What the page around this one was told of the selected node. */
let announced;

/** Show the tree and the selected node as they were at a frame. */
function show(frame) {
  drawing.show(frame, folded);
  mark();
}

/** Select a node, unfold what hides it, and bring it into view. */
function select(id) {
  const way = pathTo(nodes.get(id));
  const hidden = way.slice(0, -1).filter((above) => folded.has(above.id));
  chosen = way.at(-1);
  chooses = true;
  if (hidden.length) fold(new Set([...folded].filter((key) => !hidden.some((above) => above.id === key))));
  if (chosen.born > player.frame) player.step(chosen.born - player.frame);
  else mark();
  camera.reveal(places.get(id));
}

function mark() {
  selected = pathTo(chosen).findLast((node) => node.born <= player.frame && places.has(node.id)) ?? root;
  drawing.select(selected.id);
  set(tree, "aria-activedescendant", `node-${selected.id}`);
  fillPanel(panel, selected, player.frame, select);
  announce(selected.id);
}

function announce(id) {
  if (waits && id !== announced) parent.postMessage({ selected: id }, location.origin);
  announced = id;
}

/** Fold and unfold, with the selected node where it is on the screen. */
function fold(now) {
  folds = true;
  const held = selected;
  const before = places.get(held.id);
  folded = now;
  places = layOut(folded);
  drawing.place(places, folded);
  show(player.frame);
  const after = places.get(held.id);
  if (after) camera.move((before.x - after.x) * camera.scale, (before.y - after.y) * camera.scale);
}

function toggle(node) {
  if (!node.children.some((child) => child.born <= player.frame)) return;
  const now = new Set(folded);
  if (!now.delete(node.id)) now.add(node.id);
  fold(now);
}

/** The next node in a direction, among those that are shown. */
function neighbour(direction) {
  const shown = (node) => node && node.born <= player.frame && places.has(node.id);
  if (direction === "left") return nodes.get(selected.parent_id);
  if (direction === "right") return selected.children.find(shown);
  const level = [...places.keys()]
    .map((id) => nodes.get(id))
    .filter((node) => node.depth === selected.depth && shown(node));
  level.sort((a, b) => places.get(a.id).y - places.get(b.id).y);
  return level[level.indexOf(selected) + (direction === "up" ? -1 : 1)];
}

function walk(direction) {
  if (direction === "right" && folded.has(selected.id)) toggle(selected);
  const next = neighbour(direction);
  if (next) select(next.id);
}

const ACTIONS = {
  closer: () => camera.zoom(1.3),
  further: () => camera.zoom(1 / 1.3),
  fit: () => camera.fit(extent(places)),
  unfold: () => fold(new Set()),
  fold: () => fold(foldedToPath()),
  first: () => player.step(-Infinity),
  back: () => player.step(-1),
  play: () => player.play(),
  next: () => player.step(1),
  last: () => player.step(Infinity),
  help: () => (help.open ? help.close() : help.showModal()),
};
const TREE_KEYS = {
  ArrowLeft: () => walk("left"),
  ArrowRight: () => walk("right"),
  ArrowUp: () => walk("up"),
  ArrowDown: () => walk("down"),
  Home: () => select(root.id),
  End: () => picture.path.length && select(picture.path.at(-1)),
  Enter: () => toggle(selected),
  " ": () => toggle(selected),
  "Shift+ArrowLeft": () => camera.move(80, 0),
  "Shift+ArrowRight": () => camera.move(-80, 0),
  "Shift+ArrowUp": () => camera.move(0, 80),
  "Shift+ArrowDown": () => camera.move(0, -80),
};
const KEYS = {
  "[": ACTIONS.back,
  "]": ACTIONS.next,
  "{": ACTIONS.first,
  "}": ACTIONS.last,
  p: ACTIONS.play,
  "+": ACTIONS.closer,
  "=": ACTIONS.closer,
  "-": ACTIONS.further,
  0: ACTIONS.fit,
  u: ACTIONS.unfold,
  f: ACTIONS.fold,
  "?": ACTIONS.help,
};
const EXPLAINED = [
  ["← → ↑ ↓", "to the parent, the first child, up and down among the nodes of a depth"],
  ["Enter", "fold or unfold what lies below the node"],
  ["Home, End", "to the root, to the end of the chosen path"],
  ["[ ]", "one step back, one step on in the history"],
  ["{ }", "to the first step, to the last one"],
  ["p", "play the history, or pause"],
  ["+ −", "zoom in, zoom out"],
  ["0", "show the whole tree"],
  ["Shift + arrows", "move the drawing"],
  ["u, f", "unfold everything, leave only the chosen path"],
  ["?", "this help"],
];

const EXPLAINED_SIGNS = [
  ["action", "", "action"],
  ["answer", "", "answer"],
  ["answer", "solved", "solved"],
  ["answer", "done", "ended"],
  ["action", "pruned", "pruned"],
  ["action", "turn", "this step’s node"],
  ["action", "fresh", "new"],
];

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const name = event.shiftKey && event.key.startsWith("Arrow") ? `Shift+${event.key}` : event.key;
  const does = (document.activeElement === tree ? TREE_KEYS[name] : undefined) ?? KEYS[name];
  if (!does || (help.open && name !== "?")) return;
  event.preventDefault();
  does();
}

function click(event) {
  const group = event.target.closest(".node");
  if (!group || camera.dragged) return;
  select(group.dataset.id);
  if (event.target.closest(".toggle")) toggle(selected);
}

function changeTheme() {
  const button = document.getElementById("theme");
  const themes = ["system", "light", "dark"];
  const next = themes[(themes.indexOf(button.textContent.split(" ").at(-1)) + 1) % themes.length];
  document.documentElement.style.colorScheme = next === "system" ? "light dark" : next;
  button.textContent = `Theme: ${next}`;
}

function legend() {
  const items = EXPLAINED_SIGNS.map(([kind, mark, name]) => {
    const sign = draw("svg", { class: `sign node ${kind} ${mark}`, viewBox: "-14 -14 28 28", "aria-hidden": "true" });
    sign.append(
      draw("circle", { class: "halo", r: 12.5 }),
      ...glyph(kind, mark),
      draw("circle", { class: "spark", cx: -9, cy: -9, r: 3.5 }),
    );
    return el("li", {}, sign, name);
  });
  const line = (name) =>
    draw(
      "svg",
      { class: "sample", viewBox: "0 -6 28 12", "aria-hidden": "true" },
      draw("path", { class: `link ${name}`, d: "M0 0H28" }),
    );
  return [...items, el("li", {}, line("path"), "chosen path")];
}

function tellFacts() {
  const { strategy, outcome, usage } = picture;
  const facts = [
    strategy,
    outcome?.status.replace("_", " "),
    counted(nodes.size, "node"),
    usage.model_calls === undefined ? "" : counted(usage.model_calls, "call"),
    usage.total_tokens === undefined ? "" : counted(usage.total_tokens, "token"),
    usage.cost ? `$${usage.cost.toFixed(4)}` : "",
  ];
  write(document.getElementById("question"), cut(picture.question.slice(0, 2000), 400) || "Search tree");
  write(document.getElementById("facts"), facts.filter(Boolean).join(" · "));
  write(document.querySelector("title"), `${strategy || "search"}: ${cut(picture.question.slice(0, 200), 60)}`);
}

function start() {
  measure();
  folded = foldedAtFirst(fits);
  places = layOut(folded);
  chosen = selected = nodes.get(picture.path.at(-1)) ?? root;
  player = new History(document.querySelector("footer"), show);
  tellFacts();
  for (const list of document.querySelectorAll(".legend")) list.append(...legend());
  document
    .getElementById("keys")
    .append(...EXPLAINED.flatMap(([keys, words]) => [el("dt", {}, el("kbd", {}, keys)), el("dd", {}, words)]));
  drawing.place(places, folded);
  camera.fit(extent(places));
  if (!fits(places)) {
    camera.look(40, tree.clientHeight / 2 - places.get(root.id).y * 0.8, 0.8);
    camera.reveal(places.get(chosen.id));
  }
  player.go(lastFrame);
  document.addEventListener("keydown", press);
  tree.addEventListener("click", click);
  document.getElementById("theme").addEventListener("click", changeTheme);
  document.getElementById("ask-help").addEventListener("click", ACTIONS.help);
  for (const button of document.querySelectorAll("[data-does]"))
    button.addEventListener("click", ACTIONS[button.dataset.does]);
}

/** Draw what has grown. Who looks at an earlier moment of the search stays there. */
function grow(atEnd) {
  measure();
  folded = folds ? new Set([...folded].filter((id) => nodes.get(id)?.children.length)) : foldedAtFirst(fits);
  places = layOut(folded);
  chosen = (chooses ? nodes.get(chosen.id) : nodes.get(picture.path.at(-1))) ?? root;
  tellFacts();
  if (!camera.moved && fits(places)) camera.fit(extent(places));
  drawing.place(places, folded);
  player.grow();
  player.go(atEnd ? lastFrame : player.frame);
}

const news = [];
/** Milliseconds without drawing that follow a drawing: most of the time is left to whoever looks at a large tree. */
let rest = 0;

function drawNews() {
  const began = performance.now();
  const atEnd = player.frame >= lastFrame;
  for (const drawn of news.splice(0)) {
    if (!drawn.from) foldedFrom = Infinity;
    take(drawn);
  }
  grow(atEnd);
  rest = 3 * (performance.now() - began);
}

given((drawn) => {
  if (!player) {
    if (drawn.from) return; // what has changed of a search that was not told yet
    take(drawn);
    start();
  } else if (news.push(drawn) === 1) setTimeout(drawNews, rest);
});
