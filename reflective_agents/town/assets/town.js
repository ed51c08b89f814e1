// The page: the timeline, who knows the news, the conversations, and the memories of one agent at a time.

const cells = [];
/** What each part of the page shows, as a text. */
const drawn = new Map();
/** The agent whose memories are shown, and the moment that is selected: of whom, and from which step on. */
let person, selected;

given((day) => {
  take(day);
  show();
});

/** Show the day. While it goes on, what has not changed keeps its elements, and what is selected stays so. */
function show() {
  document.title = `${picture.town}: a day`;
  renew("town", picture.town, () => [picture.town]);
  renew("told", picture.told, () => [`${names[0] ?? "Nobody"} was told: ${picture.told}`]);
  renew("facts", summary(), () => [summary()]);
  renew("news", picture.spread, news);
  renew("day", [picture.day, picture.spread], () => [timeline()]);
  renew("talks", picture.conversations, talks);
  renew("whose", names, () => names.map(tab));
  whose(person ?? names[0]);
  if (selected) point(cellOf(selected));
  else cells[0]?.[0]?.click();
}

function put(id, ...children) {
  document.getElementById(id).replaceChildren(...children.filter((child) => child !== null));
}

/** Make a part of the page anew if what it shows has changed; what is open in it stays open. */
function renew(id, shows, make) {
  const text = JSON.stringify(shows);
  if (drawn.get(id) === text) return;
  drawn.set(id, text);
  const part = document.getElementById(id);
  const stops = () => [...part.querySelectorAll("button, summary")];
  const open = [...part.querySelectorAll("details")].map((one) => one.open);
  const focus = stops().indexOf(document.activeElement);
  put(id, ...make());
  [...part.querySelectorAll("details")].forEach((one, place) => (one.open = open[place] ?? one.open));
  stops()[focus]?.focus();
}

function summary() {
  const [first, last] = [steps[0]?.[1] ?? "", steps.at(-1)?.[1] ?? ""];
  const { usage, outcome } = picture;
  const parts = [
    `${first}–${last}`,
    counted(names.length, "agent"),
    counted(steps.length, "step"),
    counted(picture.conversations.length, "conversation"),
    counted(usage.model_calls, "call"),
    counted(usage.total_tokens, "token"),
    `${usage.seconds.toFixed(1)} s`,
    ...(usage.cost ? [`$${usage.cost.toFixed(4)}`] : []),
  ];
  return `${parts.join(" · ")}${outcome ? ` · ${outcome.status}: ${outcome.reason}` : ""}`;
}

/** Who knows of the news, and by which way it came. */
function news() {
  if (!picture.fact) return [];
  const ways = picture.spread.map((one) => {
    if (!one.knows) return el("span", { class: "chip", dir: "auto" }, `${one.agent}: does not know`);
    const way = `◆ ${one.way.join(" → ")} (${one.time})`;
    const memory = memories.get(one.memory);
    return memory ? link(way, () => showMemory(memory), { class: "chip" }) : el("span", { class: "chip" }, way);
  });
  const count = picture.spread.filter((one) => one.knows).length;
  return [`${count} of ${names.length} know about “${picture.fact}”: `, ...ways];
}

/** Rows are agents, columns are steps under their hours; what goes on for several steps is one cell. */
function timeline() {
  const places = new Map(picture.places.map((place, index) => [place, index % 8]));
  const hours = steps.map(([, time]) => time.slice(0, 2));
  const begins = hours.flatMap((hour, place) => (place && hour === hours[place - 1] ? [] : [place]));
  const times = begins.map((place, hour) => {
    const span = (begins[hour + 1] ?? steps.length) - place;
    return el("th", { scope: "colgroup", colspan: span }, steps[place][1]);
  });
  const head = el("tr", {}, el("th", { scope: "col" }, "agent"), ...times);
  const rows = names.map((name, row) => {
    const spans = spansOf(name);
    cells[row] = spans.map((span, column) => moment(span, row, column));
    const drawn = spans.map((span, column) => {
      const shown = { colspan: span.steps.length, class: `place${places.get(span.place) ?? 0}` };
      return el("td", shown, cells[row][column], marks(span));
    });
    return el("tr", {}, el("th", { scope: "row", dir: "auto" }, name), ...drawn);
  });
  const table = el("table", { class: "day" }, el("thead", {}, head), el("tbody", {}, ...rows));
  table.style.setProperty("--steps", steps.length);
  return table;
}

function moment(span, row, column) {
  const until = after(span.time, span.steps.length * picture.minutes);
  const made = el(
    "button",
    {
      type: "button",
      class: "moment",
      tabindex: row || column ? -1 : 0,
      "aria-label": `${span.agent}, ${span.time} to ${until}, ${span.place}: ${span.doing}`,
      title: `${span.time}–${until} ${span.place}: ${span.doing}`,
    },
    el("span", { class: "where", dir: "auto" }, span.place),
    el("span", { class: "doing", dir: "auto" }, span.doing),
  );
  made.addEventListener("click", () => {
    selected = { agent: span.agent, step: span.steps[0] };
    point(made);
    showSpan(span);
  });
  made.addEventListener("keydown", (event) => walk(event, row, column));
  return made;
}

/** Conversations in a span, and the news if it comes in it. */
function marks(span) {
  const known = picture.fact && span.steps.includes(learned(span.agent));
  return [
    ...span.talks.map((talk) => link(`talk ${talk}`, () => showTalk(talkOf(talk)), { class: "chip" })),
    known ? el("span", { class: "chip news" }, "◆ knows") : null,
  ];
}

/** The cell of a moment that was selected. */
function cellOf({ agent, step }) {
  return cells[names.indexOf(agent)]?.[spansOf(agent).findIndex((span) => span.steps[0] === step)];
}

/** Mark a cell as the one that is selected. */
function point(cell) {
  for (const other of document.querySelectorAll(".moment[aria-current]")) other.removeAttribute("aria-current");
  cell?.setAttribute("aria-current", "true");
  if (cell) focusOn(cell);
}

function walk(event, row, column) {
  const start = spansOf(names[row])[column].steps[0];
  const beside = (other) => {
    const line = spansOf(names[other] ?? "");
    return cells[other]?.[Math.max(line.findLastIndex((span) => span.steps[0] <= start), 0)];
  };
  const to = {
    ArrowRight: () => cells[row][column + 1],
    ArrowLeft: () => cells[row][column - 1],
    ArrowDown: () => beside(row + 1),
    ArrowUp: () => beside(row - 1),
    Home: () => cells[row][0],
    End: () => cells[row].at(-1),
  }[event.key]?.();
  if (!to) return;
  event.preventDefault();
  focusOn(to);
  to.focus();
}

function focusOn(cell) {
  for (const other of cells.flat()) other.tabIndex = other === cell ? 0 : -1;
}

function talks() {
  if (!picture.conversations.length) return [el("p", {}, "Nobody talked.")];
  return picture.conversations.map((talk) =>
    el(
      "details",
      { open: talk.talk === 1 ? "" : null },
      el("summary", { dir: "auto" }, `${talk.talk}. ${talk.time}, ${talk.place}: ${talk.agents.join(" and ")}`),
      linesOf(talk),
      link("what they remember of it", () => showTalk(talk)),
    ),
  );
}

function tab(name) {
  const made = el("button", { type: "button", dir: "auto" }, name);
  made.addEventListener("click", () => whose(name));
  return made;
}

/** Show the memories of an agent: its reflections as trees, and all of them as a table. */
function whose(name) {
  const agent = picture.agents.find((one) => one.name === name);
  if (!agent) return;
  if (person !== name) put("tree");
  person = name;
  for (const [place, button] of [...document.getElementById("whose").children].entries()) {
    button.setAttribute("aria-pressed", names[place] === name);
  }
  const top = agent.memories.filter((one) => one.evidence.length && !derived.has(one.id));
  renew("tree", [agent.about, top], () => [
    words(agent.about),
    el("h3", {}, top.length ? "Reflections, each with what it rests on" : "No reflections yet"),
    top.length ? el("ul", { class: "tree" }, ...top.map((one) => branch(one, new Set()))) : null,
  ]);
  renew("memories", [agent.memories, picture.retrievals.length], () => [table(agent)]);
}

function branch(memory, above) {
  const below = memory.evidence.map((id) => memories.get(id)).filter((one) => one && !above.has(one.id));
  const text = `${timeOf(memory)} ${HOW[memory.how]}: ${memory.text}`;
  if (!below.length) return el("li", {}, link(text, () => showMemory(memory)));
  const lower = el("ul", {}, ...below.map((one) => branch(one, new Set([...above, memory.id]))));
  const label = el("summary", { dir: "auto" }, `${text} (because of ${counted(below.length, "thing")})`);
  return el("li", {}, el("details", {}, label, link("show it", () => showMemory(memory)), lower));
}

function table(agent) {
  const columns = ["time", "how", "memory", "importance", "retrieved"];
  columns.push("recency", "importance then", "relevance", "archive");
  const head = el("tr", {}, ...columns.map((column) => el("th", { scope: "col" }, column)));
  const rows = agent.memories.map((one) => {
    const found = retrieved.get(one.id) ?? [];
    const last = found.at(-1);
    const three = ["recency", "importance", "relevance"].map((name) => (last ? term(last[name]) : el("td", {}, "–")));
    return el(
      "tr",
      { class: one.archived ? "archived" : null },
      el("td", {}, timeOf(one)),
      el("td", {}, HOW[one.how]),
      el("td", {}, link(one.text, () => showMemory(one), { "data-memory": one.id })),
      el("td", { class: "number" }, String(one.importance)),
      el("td", { class: "number" }, `${found.length}×`),
      ...three,
      el("td", {}, one.archived ? "archived" : ""),
    );
  });
  return el("table", { class: "terms" }, el("thead", {}, head), el("tbody", {}, ...rows));
}
