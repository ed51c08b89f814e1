// Sets a model's Markdown as elements. No HTML is read, and addresses other than http(s) stay text. Linear in the text.

const DEEPEST = 12;
const FENCE = /^ {0,3}(`{3,}|~{3,}) *([\w+#.-]{0,30})[^`]*$/;
const HEADING = /^ {0,3}(#{1,6}) +(\S.*)$/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?: +|$)(.*)$/;

/** The blocks of a text. `cite` makes an element of the numbers in a pair of brackets, if they are sources. */
function markdown(text, cite) {
  return blocks(text.split("\n"), cite, 0);
}

function blocks(lines, cite, depth) {
  const made = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const [element, next] = (depth < DEEPEST && block(lines, at, cite, depth)) || paragraph(lines, at, cite);
    made.push(element);
    at = next;
  }
  return made;
}

/** The block that begins at a line and the line after it; nothing for a paragraph. */
function block(lines, at, cite, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) {
    const end = nextLine(lines, at + 1, (other) => closes(other.trim(), fence[1]));
    return [codeBlock(lines.slice(at + 1, end).join("\n"), fence[2]), end + 1];
  }
  const heading = HEADING.exec(line);
  // The page has headings of its own down to the second level.
  if (heading) return [el(`h${Math.min(heading[1].length + 2, 6)}`, {}, inline(heading[2], cite)), at + 1];
  if (RULE.test(line)) return [el("hr"), at + 1];
  if (QUOTE.test(line)) {
    const end = nextLine(lines, at, (other) => !QUOTE.test(other));
    const quoted = lines.slice(at, end).map((other) => other.replace(QUOTE, ""));
    return [el("blockquote", {}, blocks(quoted, cite, depth + 1)), end];
  }
  if (ITEM.test(line)) return listBlock(lines, at, cite, depth);
  if (isTable(lines, at)) return tableBlock(lines, at, cite);
  return null;
}

/** The first line from `at` on for which something holds. */
function nextLine(lines, at, holds) {
  let end = at;
  while (end < lines.length && !holds(lines[end], end)) end += 1;
  return end;
}

function closes(line, fence) {
  return line.startsWith(fence) && [...line].every((letter) => letter === fence[0]);
}

function begins(lines, at) {
  return [FENCE, HEADING, RULE, QUOTE, ITEM].some((kind) => kind.test(lines[at])) || isTable(lines, at);
}

function paragraph(lines, at, cite) {
  const end = nextLine(lines, at + 1, (line, place) => !line.trim() || begins(lines, place));
  return [el("p", {}, inline(lines.slice(at, end).join("\n"), cite)), end];
}

function codeBlock(text, language) {
  const code = el("code", {}, text);
  const copy = el("button", { type: "button", class: "copy" }, "Copy");
  copy.addEventListener("click", () => copied(copy, text, code));
  const bar = el("figcaption", {}, el("span", {}, language || "text"), copy);
  return el("figure", { class: "code" }, bar, el("pre", { tabindex: "0" }, code));
}

/** Put a text on the clipboard; where that is not to be had, select it. */
async function copied(button, text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    write(button, "Copied");
  } catch {
    getSelection().selectAllChildren(shown);
    write(button, "Selected");
  }
  setTimeout(() => write(button, "Copy"), 1500);
}

function listBlock(lines, at, cite, depth) {
  const ordered = (item) => /\d/.test(item[2]);
  const first = ITEM.exec(lines[at]);
  const items = [];
  let width = 0;
  let end = at;
  for (; end < lines.length; end += 1) {
    const line = lines[end].replace(/^\t+/, (tabs) => "    ".repeat(tabs.length));
    const indent = line.length - line.trimStart().length;
    const item = ITEM.exec(line);
    if (items.length && (!line.trim() || indent >= width)) items.at(-1).push(line.slice(width));
    else if (item && !RULE.test(line) && ordered(item) === ordered(first)) {
      items.push([item[3]]);
      width = item[1].length + item[2].length + 1;
    } else if (lines[end - 1]?.trim() && items.length && !begins(lines, end)) items.at(-1).push(line);
    else break;
  }
  const rows = items.map((own) => {
    const parts = blocks(own, cite, depth + 1);
    const tight = parts[0]?.localName === "p" && !own.some((line, place) => place < own.length - 1 && !line.trim());
    return el("li", {}, tight ? [...parts[0].childNodes] : (parts[0] ?? ""), parts.slice(1));
  });
  if (!ordered(first)) return [el("ul", {}, rows), end];
  return [el("ol", { start: Number.parseInt(first[2], 10) }, rows), end];
}

function isTable(lines, at) {
  if (!lines[at].includes("|") || !lines[at + 1]?.includes("-")) return false;
  const divider = cells(lines[at + 1]);
  return divider.length === cells(lines[at]).length && divider.every((cell) => /^:?-+:?$/.test(cell));
}

function cells(line) {
  const row = line.trim();
  const inner = row.slice(row.startsWith("|") ? 1 : 0, row.endsWith("|") && !row.endsWith("\\|") ? -1 : undefined);
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim());
}

function tableBlock(lines, at, cite) {
  const end = nextLine(lines, at + 2, (line) => !line.includes("|"));
  const row = (name) => (line) => el("tr", {}, cells(line).map((cell) => el(name, {}, inline(cell, cite))));
  const head = el("thead", {}, row("th")(lines[at]));
  const body = el("tbody", {}, lines.slice(at + 2, end).map(row("td")));
  const scrolled = { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" };
  return [el("div", scrolled, el("table", {}, head, body)), end];
}

const SPECIAL = /[\\`*_~[!<h]/g;
const ESCAPE = /\\([!-/:-@[-`{-~])/y;
const TICKS = /`+/y;
const LABEL = /!?\[([^[\]]{0,500})\]/;
const TARGET = /\((https?:\/\/[^\s<>()]{1,2000}(?:\([^\s<>()]{0,200}\)[^\s<>()]{0,500})?)(?: "[^"]{0,300}")?\)/;
const LINK = new RegExp(LABEL.source + TARGET.source, "y");
const CITATION = /\[(\d{1,3}(?:[,;\s]{1,3}\d{1,3}){0,20})\]/y;
const ADDRESS = /<?(https?:\/\/[^\s<>"`\]]{1,2000})>?/y;
const EMPHASIS = /\*{1,3}|_{1,3}|~~/y;
const TAGS = { "*": "em", _: "em", "**": "strong", __: "strong", "~~": "del" };

/** The parts of a line or paragraph. */
function inline(text, cite, links = true) {
  const open = [{ mark: "", parts: [] }];
  const unclosed = new Set();
  const match = (pattern, at) => {
    pattern.lastIndex = at;
    return pattern.exec(text);
  };
  const put = (part) => open.at(-1).parts.push(part);
  let at = 0;
  while (at < text.length) {
    SPECIAL.lastIndex = at;
    const special = SPECIAL.exec(text)?.index ?? text.length;
    if (special > at) put(text.slice(at, special));
    at = special;
    if (at === text.length) break;
    const [parts, end] =
      escaped(match(ESCAPE, at)) ??
      codeSpan(text, match(TICKS, at), unclosed) ??
      (links ? linked(match(LINK, at), text, cite) : null) ??
      cited(match(CITATION, at), cite) ??
      (links ? addressed(match(ADDRESS, at), text) : null) ??
      marked(match(EMPHASIS, at), text, open) ?? [[text[at]], at + 1];
    for (const part of parts) put(part);
    at = end;
  }
  return flat(open, 0).parts;
}

function escaped(found) {
  return found && [[found[1]], found.index + 2];
}

function codeSpan(text, found, unclosed) {
  if (!found || unclosed.has(found[0].length)) return null;
  const from = found.index + found[0].length;
  const runs = /`+/g;
  runs.lastIndex = from;
  for (let run = runs.exec(text); run; run = runs.exec(text)) {
    if (run[0].length !== found[0].length) continue;
    return [[el("code", {}, text.slice(from, run.index).replace(/^ (.*) $/s, "$1"))], runs.lastIndex];
  }
  unclosed.add(found[0].length);
  return [[found[0]], from];
}

function linked(found, text, cite) {
  if (!found || !isAddress(found[2])) return null;
  return [[link(found[2], inline(found[1] || found[2], cite, false))], found.index + found[0].length];
}

function cited(found, cite) {
  const element = found && cite(found[1].match(/\d+/g).map(Number));
  return element ? [[element], found.index + found[0].length] : null;
}

function addressed(found, text) {
  if (!found || (found[0][0] !== "<" && /\w/.test(text[found.index - 1] ?? ""))) return null;
  const address = found[0][0] === "<" ? found[1] : withoutEnd(found[1]);
  const end = found.index + (found[0][0] === "<" ? found[0].length : address.length);
  return isAddress(address) ? [[link(address, [address])], end] : null;
}

/** An address without the signs behind it that belong to its sentence. */
function withoutEnd(address) {
  let end = address.length;
  while (".,;:!?*_~')".includes(address[end - 1])) {
    if (address[end - 1] === ")" && address.slice(0, end).includes("(")) break;
    end -= 1;
  }
  return address.slice(0, end);
}

function isAddress(text) {
  return URL.canParse(text) && ["http:", "https:"].includes(new URL(text).protocol);
}

function link(address, parts) {
  return el("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, parts);
}

/** Open or close what a run of marks stands for; where it can do neither, it is text. */
function marked(found, text, open) {
  if (!found) return null;
  const end = found.index + found[0].length;
  const [before, after] = [text[found.index - 1] ?? " ", text[end] ?? " "];
  const inWord = found[0][0] === "_" && /[\p{L}\p{N}]/u.test(before) && /[\p{L}\p{N}]/u.test(after);
  if (inWord || before === found[0][0] || after === found[0][0]) return [[found[0]], end];
  const marks = found[0].length === 3 ? [found[0][0], found[0].slice(0, 2)] : [found[0]];
  if (/\S/.test(before)) {
    const order = marks.every((mark) => open.some((one) => one.mark === mark)) ? innermostFirst(marks, open) : [];
    for (const mark of order) close(mark, open);
    if (order.length) return [[], end];
  }
  if (/\s/.test(after) || open.length > DEEPEST) return [[found[0]], end];
  for (const mark of marks) open.push({ mark, parts: [] });
  return [[], end];
}

function innermostFirst(marks, open) {
  const depth = (mark) => open.findLastIndex((one) => one.mark === mark);
  return marks.toSorted((a, b) => depth(b) - depth(a));
}

function close(mark, open) {
  const { parts } = flat(open, open.findLastIndex((one) => one.mark === mark));
  open.pop();
  open.at(-1).parts.push(el(TAGS[mark], {}, parts));
}

/** Make text of the marks above a place that nothing has closed; returns what is open there. */
function flat(open, place) {
  const own = open[place];
  for (const { mark, parts } of open.splice(place + 1)) own.parts = own.parts.concat(mark, parts);
  return own;
}
