// Where each node stands: depth from left to right, siblings below each other. Places do not depend on the history, so
// that a node stays where it is while the search goes on.

const ROW = 40;
const GAP = 54;
let columns;
/** Width of a label: what the window has room for, as far as that can be read. */
let LABEL;
/** Where the bar of a value begins: behind the largest number of visits. */
let BAR;

/** Measure what all nodes have in common. */
function measure() {
  columns = Math.max(...[...nodes.values()].map((node) => node.depth)) - root.depth + 1;
  const room = document.getElementById("tree").clientWidth / columns - GAP;
  LABEL = Math.round(Math.min(Math.max(room, 132), 560));
  BAR = 68 + 8 * String(figuresAt(root, lastFrame).n).length;
}

/** The places of all nodes that are not folded away, in reading order, by id: x, y, and the place among siblings. */
function layOut(folded) {
  const tree = d3.hierarchy(root, (node) => (folded.has(node.id) ? null : node.children));
  const apart = (a, b) => (a.parent === b.parent ? 1 : 1.4);
  d3
    .tree()
    .nodeSize([ROW, LABEL + GAP])
    .separation(apart)(tree);
  const places = new Map();
  tree.eachBefore((place) => places.set(place.data.id, { x: place.y, y: place.x, depth: place.depth }));
  return places;
}

/** The rectangle that holds all places, labels included. */
function extent(places) {
  const xs = [...places.values()].map((place) => place.x);
  const ys = [...places.values()].map((place) => place.y);
  const [left, right] = [Math.min(...xs) - 24, Math.max(...xs) + LABEL + 56];
  const [top, bottom] = [Math.min(...ys) - 24, Math.max(...ys) + 24];
  return { left, top, width: right - left, height: bottom - top };
}

/** The depth from which on nodes were folded the last time. */
let foldedFrom = Infinity;

/** What is folded at first: as little as makes the tree fit, from the deepest nodes up, but never the path. A tree that
 * grows is folded no less than before. */
function foldedAtFirst(fits) {
  for (let depth = Math.min(columns, foldedFrom); depth > 0; depth -= 1) {
    const deep = (node) => node.depth - root.depth >= depth && node.children.length && !onPath.has(node.id);
    const folded = new Set([...nodes.values()].filter(deep).map((node) => node.id));
    if (!fits(layOut(folded))) continue;
    if (folded.size) foldedFrom = depth;
    return folded;
  }
  foldedFrom = 0;
  return foldedToPath();
}

/** All that lies below neither the root nor the chosen path. */
function foldedToPath() {
  const closed = (node) => node.children.length && node !== root && !onPath.has(node.id);
  return new Set([...nodes.values()].filter(closed).map((node) => node.id));
}
