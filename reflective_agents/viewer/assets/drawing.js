// Draws nodes and links, and changes only what has changed.

class Drawing {
  constructor(links, layer) {
    this.links = links;
    this.layer = layer;
    this.drawn = new Map();
    const { fontSize, fontFamily } = getComputedStyle(layer);
    this.font = `${fontSize} ${fontFamily}`;
  }

  /** Draw exactly the nodes that have a place. */
  place(places, folded) {
    for (const [id, parts] of this.drawn) {
      if (places.has(id) && parts.looks === this.#looks(nodes.get(id))) continue;
      parts.group.remove();
      parts.link?.remove();
      this.drawn.delete(id);
    }
    let before = null;
    for (const [id, place] of places) {
      const parts = this.drawn.get(id) ?? this.#make(nodes.get(id));
      parts.group.setAttribute("transform", `translate(${place.x} ${place.y})`);
      parts.link?.setAttribute("d", curve(places.get(nodes.get(id).parent_id), place));
      if (nodes.get(id).children.length) parts.group.setAttribute("aria-expanded", !folded.has(id));
      if (before && parts.group.previousElementSibling !== before) before.after(parts.group);
      else if (!before) this.layer.prepend(parts.group);
      before = parts.group;
    }
  }

  /** Show the tree as it was at a frame. */
  show(frame, folded) {
    const told = picture.frames[frame];
    const added = new Set(told.added);
    for (const [id, parts] of this.drawn) {
      const node = nodes.get(id);
      const state = {
        unborn: node.born > frame,
        fresh: frame > 0 && added.has(id),
        turn: told.node === id,
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
      parts.mark.setAttribute("d", MARKS[endOf(node, frame)] ?? "");
    }
  }

  /** Mark the selected node. */
  select(id) {
    this.layer.querySelector(".selected")?.classList.remove("selected");
    this.layer.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    this.drawn.get(id).group.classList.add("selected");
    this.drawn.get(id).group.setAttribute("aria-selected", "true");
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
    if (link && onPath.has(node.id)) this.links.append(link);
    else if (link) this.links.prepend(link);
    const parts = { group, link, shape, mark, q, n, bar, badge, looks: this.#looks(node) };
    this.drawn.set(node.id, parts);
    return parts;
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
    const told = `${n} ${q} ${isFolded} ${below} ${node.prunedAt <= frame}`;
    if (parts.told === told) return;
    parts.told = told;
    const known = q ?? (node.visited ? null : worth(node));
    parts.q.textContent = n || known === null ? number(known) : `(${number(known)})`;
    parts.group.classList.toggle("unvisited", !n);
    parts.n.textContent = `×${n}`;
    const share = Math.min(Math.max(known ?? 0, 0), 1);
    parts.bar.setAttribute("width", (LABEL - BAR - 8) * share);
    parts.shape.style.setProperty("--q", share);
    parts.badge.textContent = below ? (isFolded ? `+${whole.format(below)}` : "‹") : "";
    const said = [node.kind, `Q ${number(q)}`, counted(n, "visit"), ...marksOf(node, frame)];
    parts.group.setAttribute("aria-label", `${node.id}: ${said.join(", ")}. ${cut(lineOf(node), 80)}`);
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

function curve(from, to) {
  const [x, y, end] = [from.x + LABEL + 12, from.y, to.x - 11];
  const middle = (x + end) / 2;
  return `M${from.x + LABEL + 4} ${y}H${x}C${middle} ${y} ${middle} ${to.y} ${end} ${to.y}`;
}
