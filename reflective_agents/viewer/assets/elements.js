// Makes elements. Whatever is put into them becomes text: strings are appended as text nodes, never parsed.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element with attributes and children; a child is an element or a text. */
function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same for SVG. */
function draw(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) element.append(child);
  return element;
}

/** Set an attribute, unless it is so already: what is set is drawn anew. */
function set(element, name, value) {
  if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

/** The same for the text of an element. */
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const whole = new Intl.NumberFormat("en");

/** A number for people; a dash for what is not known. */
function number(value, digits = 2) {
  if (value === null || value === undefined) return "–";
  return digits ? value.toFixed(digits) : whole.format(value);
}

/** `1 call`, `2 calls`. */
function counted(count, word) {
  return `${whole.format(count)} ${word}${count === 1 ? "" : "s"}`;
}

/** The beginning of a text that is about `width` letters wide; East Asian letters are two wide. */
function cut(text, width) {
  let room = width;
  let kept = "";
  for (const letter of text) {
    room -= letter.codePointAt(0) > 0x2e7f ? 2 : 1;
    if (room < 0) return `${kept.trimEnd()}…`;
    kept += letter;
  }
  return kept;
}

const ruler = document.createElement("canvas").getContext("2d");

/** The beginning of a text that fits into `width` pixels in a CSS font. */
function fitted(text, width, font) {
  ruler.font = font;
  if (ruler.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ruler.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return `${text
    .slice(0, low)
    .replace(/[\ud800-\udbff]$/, "")
    .trimEnd()}…`;
}

const SHAPES = {
  root: "M0-9.5 9.5 0 0 9.5-9.5 0Z",
  action: "M-7-7H7V7H-7Z",
  answer: "M-8 0A8 8 0 1 0 8 0 8 8 0 1 0-8 0Z",
};
const MARKS = { solved: "M-3.8 .3-1.2 3 4-3.2", pruned: "M-3.4-3.4 3.4 3.4M3.4-3.4-3.4 3.4", done: "M-3.4 0H3.4" };

/** The sign of a node: its shape tells the kind, the mark in it how it ended. */
function glyph(kind, mark) {
  return [
    draw("path", { class: "shape", d: SHAPES[kind] ?? SHAPES.action }),
    draw("path", { class: "mark", d: MARKS[mark] ?? "" }),
  ];
}
