// What was said on a thread, what happens, and what a strategy leaves beside its answer.

const MOST_EVENTS = 400;

/** Show the messages of a thread, and the answer as it is written. */
function showSaid(messages, answer) {
  const shown = [...messages, ...(answer ? [{ type: "ai", text: answer, open: true }] : [])];
  const items = shown.map(({ type, text, open }) =>
    el(
      "li",
      { class: open ? `${type} open` : type },
      el("span", { class: "who" }, type === "human" ? "You" : "Answer"),
      el("div", { class: "text", dir: "auto" }, text),
    ),
  );
  document.getElementById("said").replaceChildren(...items);
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

/** Show rounds, trials, a day: whatever lists a strategy keeps. */
function showLists(lists) {
  const blocks = Object.entries(lists).map(([name, rows]) =>
    el("details", { open: "" }, el("summary", {}, `${name} (${rows.length})`), el("ol", {}, ...rows.map(row))),
  );
  document.getElementById("lists").replaceChildren(...blocks);
}

function row(parts) {
  const pairs = Object.entries(parts).map(([name, text]) => [el("dt", {}, name), el("dd", { dir: "auto" }, text)]);
  return el("li", {}, el("dl", {}, ...pairs.flat()));
}
