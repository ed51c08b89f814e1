// What was said on a thread, what happens, and what a strategy leaves beside its answer.

const MOST_EVENTS = 400;
const TEXT = { class: "text", dir: "auto" };

/** Show the messages of a thread, and the answer as it is written. `edit` is called with a question that is clicked. */
function showSaid(messages, answer, edit) {
  const list = document.getElementById("said");
  const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  const shown = [...messages, ...(answer ? [{ type: "ai", text: answer, open: true }] : [])];
  shown.forEach((message, place) => {
    const made = list.children[place] ?? list.appendChild(el("li"));
    const all = JSON.stringify(message);
    if (made.shows === all) return; // what is open, focused or selected in it stays so
    made.shows = all;
    set(made, "class", message.file === undefined ? message.type : "file");
    made.classList.toggle("open", Boolean(message.open));
    made.replaceChildren(...partsOf(message, edit));
  });
  while (list.childElementCount > shown.length) list.lastElementChild.remove();
  if (atEnd) list.scrollTop = list.scrollHeight;
}

function partsOf(message, edit) {
  if (message.file !== undefined) {
    const name = `${message.file || "A text"} · ${counted(message.size, "character")}`;
    return [el("details", {}, el("summary", { dir: "auto" }, name), el("div", TEXT, message.text))];
  }
  if (message.type === "ai") return answerParts(message);
  if (message.type !== "human") return [el("div", { class: "who" }, message.type), el("div", TEXT, message.text)];
  const button = el("button", { type: "button", class: "quiet" }, "Edit and ask again");
  button.addEventListener("click", () => edit(message));
  return [el("div", { class: "who" }, "You", button), el("div", TEXT, message.text)];
}

function answerParts(message) {
  const sources = new Map((message.sources ?? []).map((source) => [source.number, source]));
  const cite = (numbers) => citation(numbers, sources);
  const body = el("div", { class: "text markdown", dir: "auto" }, markdown(message.text, cite));
  const copy = el("button", { type: "button", class: "quiet copy" }, "Copy");
  copy.addEventListener("click", () => copied(copy, message.text, body));
  const by = [message.strategy || "Answer", message.note || message.model].filter(Boolean).join(" · ");
  const line = (source) => el("li", { value: source.number }, sourceButton(source, titleOf(source)));
  const listed = sources.size ? el("ol", { class: "sources" }, [...sources.values()].map(line)) : "";
  return [el("div", { class: "who" }, el("span", {}, by), copy), body, listed];
}

/** The numbers of sources as links to what these say; nothing if they are something else. */
function citation(numbers, sources) {
  if (!numbers.every((number) => sources.has(number))) return null;
  const button = (number) => sourceButton(sources.get(number), String(number));
  const parts = numbers.flatMap((number, place) => [place ? ", " : "", button(number)]);
  return el("span", { class: "cites" }, "[", parts, "]");
}

function sourceButton(source, label) {
  const button = el("button", { type: "button", class: "link", title: titleOf(source) }, label);
  button.addEventListener("click", () => showSource(source).catch(complain));
  return button;
}

function titleOf({ title, url }) {
  return title || url;
}

/** Open what the run was shown of a source, with the words marked that support the answer. */
async function showSource(source) {
  const dialog = document.getElementById("passage");
  const place = document.getElementById("passage-text");
  const address = document.getElementById("passage-address");
  write(document.getElementById("passage-title"), titleOf(source));
  address.replaceChildren(isAddress(source.url) ? link(withFragment(source), [source.url]) : source.url);
  place.replaceChildren("…");
  if (!dialog.open) dialog.showModal();
  dialog.shows = source;
  const passages = await get(`threads/${open.id}/passages?url=${encodeURIComponent(source.url)}`);
  if (dialog.shows !== source) return;
  const texts = passages.length ? passages : ["What the run has read there is not kept."];
  place.replaceChildren(...texts.map((text) => el("p", { dir: "auto" }, highlighted(text, source.words))));
  place.querySelector("mark")?.scrollIntoView({ block: "center" });
}

/** The address of a page at the words that support the answer, where the browser can find them. */
function withFragment({ url, words }) {
  if (!words.length || url.includes("#")) return url;
  return `${url}#:~:text=${encodeURIComponent(words[0].slice(0, 300)).replaceAll("-", "%2D")}`;
}

function highlighted(text, words) {
  const found = words.map((quote) => [text.indexOf(quote), quote.length]).filter(([begin, size]) => begin >= 0 && size);
  const parts = [];
  let at = 0;
  for (const [begin, size] of found.toSorted(([a], [b]) => a - b)) {
    if (begin < at) continue;
    parts.push(text.slice(at, begin), el("mark", {}, text.slice(begin, begin + size)));
    at = begin + size;
  }
  return [...parts, text.slice(at)];
}

/** One line for an event. */
function lineOf(event) {
  const apart = new Set(["seq", "event", "stats", "model_calls", "total_tokens", "seconds", "cost", "expansions"]);
  const parts = Object.entries(event)
    .filter(([name, value]) => !apart.has(name) && value !== null && value !== "")
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`);
  return `${event.event}: ${cut(parts.join(", "), 300)}`;
}

/** Add lines to the list of what happens. */
function addEvents(events) {
  const list = document.getElementById("events");
  list.append(...events.map((event) => el("li", { dir: "auto" }, lineOf(event))));
  while (list.childElementCount > MOST_EVENTS) list.firstElementChild.remove();
}

/** Show rounds, trials, plans: whatever lists a strategy keeps. A row that has not changed keeps its element. */
function showLists(lists) {
  const place = document.getElementById("lists");
  for (const old of [...place.children]) if (!(old.dataset.list in lists)) old.remove();
  for (const [name, rows] of Object.entries(lists)) {
    const known = [...place.children].find((one) => one.dataset.list === name);
    const block = known ?? place.appendChild(el("details", { open: "", "data-list": name }, el("summary"), el("ol")));
    write(block.firstChild, `${name} (${rows.length})`);
    const list = block.lastChild;
    rows.forEach((parts, number) => {
      const made = row(parts);
      const old = list.children[number];
      if (!old) list.append(made);
      else if (!old.isEqualNode(made)) old.replaceWith(made);
    });
    while (list.childElementCount > rows.length) list.lastElementChild.remove();
  }
}

function row(parts) {
  const pairs = Object.entries(parts).map(([name, text]) => [el("dt", {}, name), el("dd", { dir: "auto" }, text)]);
  return el("li", {}, el("dl", {}, ...pairs.flat()));
}
