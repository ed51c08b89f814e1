// Draws nodes and links, and changes only what has changed. A node and all below it are one branch, which stands where
// it does from its parent's place: what makes room for new nodes moves as a whole.

class Drawing {
  constructor(links, layer) {
    this.links = links;
    this.layer = layer;
    this.drawn = new Map();
    this.branches = new Map();
    const { fontSize, fontFamily } = getComputedStyle(layer);
    this.font = `${fontSize} ${fontFamily}`;
  }

  /** Draw exactly the nodes that have a place. */
  place(places, folded) {
    for (const [id, branch] of this.branches) {
      if (places.has(id)) continue;
      for (const layer of Object.values(branch)) layer.remove();
      this.branches.delete(id);
      this.drawn.delete(id);
    }
    const last = new Map();
    for (const [id, place] of places) {
      const node = nodes.get(id);
      const parts = this.#current(node);
      const branch = this.branches.get(id);
      const from = places.get(node.parent_id) ?? { x: 0, y: 0 };
      const [x, y] = [rounded(place.x - from.x), rounded(place.y - from.y)];
      for (const layer of Object.values(branch)) set(layer, "transform", `translate(${x} ${y})`);
      if (parts.link) set(parts.link, "d", curve(x, y));
      if (node.children.length) set(parts.group, "aria-expanded", !folded.has(id));
      const before = last.get(node.parent_id);
      if (before && before.nextElementSibling !== branch.nodes) before.after(branch.nodes);
      last.set(node.parent_id, branch.nodes).set(id, parts.group);
    }
  }

  /** What a node is drawn with, made anew if it looks different now. */
  #current(node) {
    const before = this.drawn.get(node.id);
    if (before?.looks === this.#looks(node)) return before;
    before?.group.remove();
    before?.link?.remove();
    const parts = this.#make(node);
    const branch = this.branches.get(node.id) ?? { nodes: draw("g", { role: "none" }), links: draw("g") };
    const above = this.branches.get(node.parent_id) ?? { nodes: this.layer, links: this.links };
    if (!this.branches.has(node.id)) above.nodes.append(branch.nodes);
    if (onPath.has(node.id)) above.links.append(branch.links);
    else above.links.prepend(branch.links);
    branch.nodes.prepend(parts.group);
    if (parts.link) branch.links.prepend(parts.link);
    this.branches.set(node.id, branch);
    this.drawn.set(node.id, parts);
    return parts;
  }

  /** Show the tree as it was at a frame. */
  show(frame, folded) {
    const drawn = picture.frames[frame];
    const added = new Set(drawn.added);
    for (const [id, parts] of this.drawn) {
      const node = nodes.get(id);
      const state = {
        unborn: node.born > frame,
        fresh: frame > 0 && added.has(id),
        turn: drawn.node === id,
        pruned: node.prunedAt <= frame,
      };
      if (!state.unborn) this.#figures(parts, node, frame, folded.has(id));
      const names = Object.keys(state)
        .filter((name) => state[name])
        .join(" ");
      if (parts.state === names) continue;
      parts.state = names;
      for (const [name, holds] of Object.entries(state)) {
        parts.group.classList.toggle(name, holds);
        parts.link?.classList.toggle(name, holds);
      }
      set(parts.mark, "d", MARKS[endOf(node, frame)] ?? "");
    }
  }

  /** Mark the selected node. */
  select(id) {
    const { group } = this.drawn.get(id);
    if (group === this.selected) return;
    this.selected?.classList.remove("selected");
    this.selected?.setAttribute("aria-selected", "false");
    group.classList.add("selected");
    group.setAttribute("aria-selected", "true");
    this.selected = group;
  }

  #make(node) {
    const [shape, mark] = glyph(node.kind, endOf(node, lastFrame));
    const q = draw("tspan", { class: "q", x: 16 });
    const n = draw("tspan", { class: "n", x: 54 });
    const font = `${onPath.has(node.id) ? 600 : 400} ${this.font}`;
    const words = draw("tspan", { class: "words", x: 16, y: 12 }, fitted(lineOf(node), LABEL - 22, font));
    const bar = draw("rect", { class: "bar", x: BAR, y: -9, height: 4, width: 0 });
    const badge = draw("text", { class: "badge", x: LABEL + 22, y: 4 });
    const group = draw(
      "g",
      { id: `node-${node.id}`, "data-id": node.id, role: "treeitem", "aria-selected": "false" },
      draw("rect", { class: "ring", x: -14, y: -18, width: LABEL + 14, height: 36, rx: 9 }),
      draw("circle", { class: "halo", r: 13 }),
      shape,
      mark,
      draw("circle", { class: "spark", cx: -9, cy: -9, r: 3 }),
      draw("text", { y: -3 }, q, n, words),
      draw("rect", { class: "rail", x: BAR, y: -9, height: 4, width: LABEL - BAR - 8 }),
      bar,
      node.children.length ? draw("g", { class: "toggle" }, hitArea(), badge) : null,
    );
    group.setAttribute("class", ["node", node.kind, ...this.#lasting(node)].join(" "));
    const siblings = nodes.get(node.parent_id)?.children ?? [node];
    group.setAttribute("aria-level", node.depth + 1 - root.depth);
    group.setAttribute("aria-setsize", siblings.length);
    group.setAttribute("aria-posinset", siblings.indexOf(node) + 1);
    const link = node === root ? null : draw("path", { class: ["link", ...this.#lasting(node)].join(" ") });
    return { group, link, shape, mark, q, n, bar, badge, looks: this.#looks(node) };
  }

  /** What a node is drawn with for good: if it changes, as while a search grows, the node is drawn anew. */
  #looks(node) {
    const siblings = nodes.get(node.parent_id)?.children.length;
    return [LABEL, BAR, node.kind, lineOf(node), node.children.length > 0, siblings, this.#lasting(node)].join(" ");
  }

  #lasting(node) {
    return [node.solved ? "solved" : "", onPath.has(node.id) ? "path" : ""].filter(Boolean);
  }

  #figures(parts, node, frame, isFolded) {
    const { n, q } = figuresAt(node, frame);
    const below = node.children.length ? countBelow(node, frame) : 0;
    const look = `${n} ${q} ${isFolded} ${below} ${node.prunedAt <= frame}`;
    if (parts.look === look) return;
    parts.look = look;
    const known = q ?? (node.visited ? null : worth(node));
    write(parts.q, n || known === null ? number(known) : `(${number(known)})`);
    parts.group.classList.toggle("unvisited", !n);
    write(parts.n, `×${n}`);
    const share = Math.min(Math.max(known ?? 0, 0), 1);
    set(parts.bar, "width", (LABEL - BAR - 8) * share);
    parts.shape.style.setProperty("--q", share);
    write(parts.badge, below ? (isFolded ? `+${whole.format(below)}` : "‹") : "");
    const facts = [node.kind, `Q ${number(q)}`, counted(n, "visit"), ...marksOf(node, frame)];
    parts.group.setAttribute("aria-label", `${node.id}: ${facts.join(", ")}. ${cut(lineOf(node), 80)}`);
  }
}

/** How a node ended, for the mark in its sign. */
function endOf(node, frame) {
  if (node.solved) return "solved";
  if (node.prunedAt <= frame) return "pruned";
  return node.done ? "done" : "";
}

function hitArea() {
  return draw("rect", { class: "hit", x: LABEL + 2, y: -10, width: 40, height: 20, rx: 10 });
}

/** The line to a node from its parent, which stands so far to the left and above. */
function curve(x, y) {
  const begin = LABEL + 12 - x;
  const middle = (begin - 11) / 2;
  return `M${begin - 8} ${-y}H${begin}C${middle} ${-y} ${middle} 0 -11 0`;
}

function rounded(pixels) {
  return Math.round(pixels * 100) / 100;
}
