// Moves and scales the drawing: by pointer, wheel, pinch, buttons and keys.

const CLOSEST = 3;
const FURTHEST = 0.05;
/** Pixels at the edges of the stage that stay free; at the top there are buttons. */
const OVERLAID = { top: 44, bottom: 8 };
/** Below this scale labels can hardly be read. */
const READABLE = 0.55;

class Camera {
  constructor(stage, world) {
    this.stage = stage;
    this.world = world;
    this.x = this.y = 0;
    this.scale = 1;
    this.pointers = new Map();
    this.dragged = false;
    /** Whether somebody has moved or scaled the drawing. */
    this.moved = false;
    stage.addEventListener("pointerdown", (event) => this.#down(event));
    stage.addEventListener("pointermove", (event) => this.#move(event));
    for (const end of ["pointerup", "pointercancel"]) stage.addEventListener(end, (event) => this.#up(event));
    stage.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
  }

  /** Put a point of the drawing at a point of the stage, at a scale. */
  look(x, y, scale = this.scale) {
    if (x === this.x && y === this.y && scale === this.scale) return;
    [this.x, this.y, this.scale] = [x, y, scale];
    this.world.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
    this.stage.classList.toggle("far", scale < 0.52);
    this.stage.classList.toggle("farther", scale < 0.36);
  }

  /** Move by so many pixels. */
  move(dx, dy) {
    this.look(this.x + dx, this.y + dy);
  }

  /** Scale by a factor, around a point of the stage; around its middle if none is given. */
  zoom(factor, around = this.#middle()) {
    const scale = Math.min(Math.max(this.scale * factor, FURTHEST), CLOSEST);
    const ratio = scale / this.scale;
    this.look(around.x - (around.x - this.x) * ratio, around.y - (around.y - this.y) * ratio, scale);
  }

  /** The scale at which a rectangle is seen whole, no larger than life. */
  scaleFor(box) {
    const { width, height } = this.stage.getBoundingClientRect();
    const free = height - OVERLAID.top - OVERLAID.bottom;
    return Math.max(Math.min(width / box.width, free / box.height, 1), FURTHEST);
  }

  /** Show a rectangle whole. */
  fit(box) {
    const { width, height } = this.stage.getBoundingClientRect();
    const free = height - OVERLAID.top - OVERLAID.bottom;
    const scale = this.scaleFor(box);
    const [x, y] = [(width - box.width * scale) / 2, (free - box.height * scale) / 2 + OVERLAID.top];
    this.look(Math.min(x, 40) - box.left * scale, y - box.top * scale, scale);
  }

  /** Move as little as is needed to see a place with its label. */
  reveal(place, margin = 48) {
    const { width, height } = this.stage.getBoundingClientRect();
    const [x, y] = [place.x * this.scale + this.x, place.y * this.scale + this.y];
    const wide = Math.min(LABEL * this.scale, width - 2 * margin);
    const dx = Math.max(margin - x, 0) || Math.min(width - margin - wide - x, 0);
    const dy = Math.max(margin - y, 0) || Math.min(height - margin - y, 0);
    if (dx || dy) this.move(dx, dy);
  }

  #middle() {
    const { width, height } = this.stage.getBoundingClientRect();
    return { x: width / 2, y: height / 2 };
  }

  #at(event) {
    const { left, top } = this.stage.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  #down(event) {
    if (event.button !== 0) return;
    if (!this.pointers.size) this.dragged = false;
    this.pointers.set(event.pointerId, this.#at(event));
  }

  #move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = this.#at(event);
    const far = Math.hypot(now.x - before.x, now.y - before.y) > 4;
    if (!this.dragged && !far) return;
    // Captured only now: a captured pointer would take the click away from the node.
    if (!this.dragged) this.stage.setPointerCapture(event.pointerId);
    this.dragged = this.moved = true;
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.pointers.set(event.pointerId, now);
    if (other) this.zoom(distance(now, other) / Math.max(distance(before, other), 1), between(now, other));
    else this.move(now.x - before.x, now.y - before.y);
  }

  #up(event) {
    this.pointers.delete(event.pointerId);
  }

  #wheel(event) {
    event.preventDefault();
    this.moved = true;
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0015)), this.#at(event));
  }
}

function distance(a, b) {
  return Math.hypot(a.x - b.x, a.y - b.y);
}

function between(a, b) {
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
}
