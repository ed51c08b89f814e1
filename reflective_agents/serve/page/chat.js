// What was said on a thread, what happens, and what a strategy leaves beside its answer.

const MOST_EVENTS = 400;
const TEXT = { class: "text", dir: "auto" };

/** Show the messages of a thread, and the answer as it is written. */
function showSaid(messages, answer) {
  const list = document.getElementById("said");
  const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  const shown = [...messages, ...(answer ? [{ type: "ai", text: answer, open: true }] : [])];
  shown.forEach(({ type, text, open }, place) => {
    const made = list.children[place] ?? list.appendChild(el("li", {}, el("span", { class: "who" }), el("div", TEXT)));
    set(made, "class", open ? `${type} open` : type);
    write(made.firstChild, type === "human" ? "You" : "Answer");
    write(made.lastChild, text);
  });
  while (list.childElementCount > shown.length) list.lastElementChild.remove();
  if (atEnd) list.scrollTop = list.scrollHeight;
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
