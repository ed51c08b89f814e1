// The list of the tasks. Only the rows in sight exist, so that ten thousand tasks are as quick as ten.

const ROW = 30;
const MORE = 12;
const list = document.getElementById("list");
const rows = document.getElementById("rows");
const paid = tasks.some((task) => task.cells.some((cell) => cell?.cost));

/** A column: its name, what it shows, what it sorts by, and its width in letters; a narrow window hides some. */
const COLUMNS = [
  ...runs.map((run, place) => ({
    name: several ? numbered(place) : "ok",
    about: several ? run : null,
    class: "sign",
    shows: (task) => signOf(task, place),
    key: (task) => WORST[task.verdicts[place]],
  })),
  { name: "id", class: "id", shows: (task) => cut(task.id, 40), key: (task) => task.place },
  { name: "question", class: "long question", shows: (task) => cut(task.question, 160), key: (task) => task.question },
  ...(several
    ? []
    : [
        {
          name: "answer",
          class: "long",
          shows: (task) => cut(answerOf(task) || "no answer", 120),
          key: answerOf,
        },
      ]),
  {
    name: "right answer",
    class: "long wide",
    shows: (task) => cut(task.gold ?? "–", 80),
    key: (task) => task.gold ?? "",
  },
  amount("calls", "calls", (value) => number(value, 0)),
  ...(several ? [] : [amount("tokens", "tokens", (value) => number(value, 0), "wide")]),
  ...(paid ? [amount("cost", "cost", money, "wide")] : []),
  amount("seconds", "s", (value) => number(value, 1), "wide"),
];

let order = { column: null, down: false };
let shownTasks = [];
let current = null;
let drawnFrom = -1;
let drawnHeight = 0;
const drawnRows = new Map();

/** The answer that counted: what was taken from the reply, else the reply. */
function answerOf(task) {
  return task.cells[0]?.extracted ?? task.cells[0]?.answer ?? "";
}

/** A column of figures; of several runs their sum. */
function amount(field, name, words, more = "") {
  const sum = (task) => {
    const known = task.cells.map((cell) => cell?.[field]).filter((value) => value !== null && value !== undefined);
    return known.length ? known.reduce((total, value) => total + value, 0) : null;
  };
  return { name, class: `number ${more}`, shows: (task) => words(sum(task)), key: (task) => sum(task) ?? -1 };
}

function signOf(task, place) {
  const how = task.verdicts[place];
  return el("span", { class: how, role: "img", "aria-label": NAMES[how], title: NAMES[how] }, SIGNS[how]);
}

/** Wrong answers first, and of several runs the tasks on which they differ; else by the column. */
function compareTasks(one, other) {
  const { column, down } = order;
  if (!column) return one.rank - other.rank || one.place - other.place;
  const [a, b] = [column.key(one), column.key(other)];
  const way = typeof a === "string" ? collator.compare(a, b) : a - b;
  return (down ? -way : way) || one.place - other.place;
}
const collator = new Intl.Collator(undefined, { numeric: true });

const FILTERS = {
  all: () => true,
  ...(several ? { "the runs differ": (task) => new Set(task.verdicts).size > 1 } : {}),
  "wrong or crashed": (task) => task.verdicts.some((one) => one === "wrong" || one === "crashed"),
  right: (task) => task.verdicts.every((one) => one === "right"),
  crashed: (task) => task.verdicts.includes("crashed"),
  "stopped by a limit": (task) => task.cells.some((cell) => cell?.status === "limit_reached"),
  "not measured": (task) => task.verdicts.includes("unknown"),
};

/** Choose the tasks that are listed, and sort them. */
function refresh() {
  const words = document.getElementById("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = FILTERS[document.getElementById("which").value];
  shownTasks = tasks.filter((task) => fits(task) && words.every((word) => task.text.includes(word)));
  shownTasks.sort(compareTasks);
  document.getElementById("shown").textContent = `${number(shownTasks.length, 0)} of ${counted(tasks.length, "task")}`;
  list.scrollTop = 0;
  head();
  drawRows(true);
}

function head() {
  const cells = COLUMNS.map((column) => {
    const sorted = order.column === column ? (order.down ? "descending" : "ascending") : null;
    const button = el("button", { type: "button" }, column.name, sorted ? (order.down ? " ▼" : " ▲") : "");
    button.addEventListener("click", () => sortBy(column));
    const about = { class: column.class, title: column.about, dir: "auto" };
    return el("th", { scope: "col", "aria-sort": sorted, ...about }, button);
  });
  rows.tHead?.remove();
  rows.prepend(el("thead", {}, el("tr", {}, ...cells)));
}

/** Up, down, and back to the order in which the list begins. */
function sortBy(column) {
  if (order.column !== column) order = { column, down: false };
  else order = order.down ? { column: null, down: false } : { column, down: true };
  refresh();
}

function drawRows(anew = false) {
  const top = rows.tHead.offsetHeight;
  const first = Math.max(Math.floor((list.scrollTop - top) / ROW) - MORE, 0);
  const from = first - (first % 2);
  if (!anew && Math.abs(from - drawnFrom) < MORE / 2) return;
  drawnFrom = from;
  drawnHeight = list.clientHeight;
  const until = Math.min(from + Math.ceil(list.clientHeight / ROW) + 2 * MORE, shownTasks.length);
  drawnRows.clear();
  const drawn = shownTasks.slice(from, until).map((task, place) => rowOf(task, from + place));
  const body = el("tbody", {}, gap(from), ...drawn, gap(shownTasks.length - until));
  rows.tBodies[0]?.remove();
  rows.append(body);
  rows.setAttribute("aria-rowcount", shownTasks.length + 1);
}

/** What takes the room of the rows that are not there. */
function gap(count) {
  if (!count) return null;
  const cell = el("td");
  cell.style.height = `${count * ROW}px`;
  return el("tr", { class: "gap", "aria-hidden": "true" }, cell);
}

function rowOf(task, place) {
  const selected = task === current;
  const cells = COLUMNS.map((column) => el("td", { class: column.class, dir: "auto" }, column.shows(task)));
  const row = el("tr", { "aria-rowindex": place + 2, class: selected ? "selected" : null }, ...cells);
  row.addEventListener("click", () => choose(task, true));
  drawnRows.set(task, row);
  return row;
}

function mark(task) {
  for (const [other, row] of drawnRows) row.className = other === task ? "selected" : "";
}

/** Go on by so many rows, and keep the row in sight. */
function walk(step) {
  const place = shownTasks.indexOf(current);
  const next = shownTasks[Math.max(0, Math.min(shownTasks.length - 1, place < 0 ? 0 : place + step))];
  if (!next) return;
  const at = shownTasks.indexOf(next) * ROW;
  const room = list.clientHeight - rows.tHead.offsetHeight;
  if (at < list.scrollTop) list.scrollTop = at;
  else if (at + ROW > list.scrollTop + room) list.scrollTop = at + ROW - room;
  choose(next);
}

const LIST_KEYS = {
  ArrowDown: () => walk(1),
  ArrowUp: () => walk(-1),
  PageDown: () => walk(Math.floor(list.clientHeight / ROW) - 2),
  PageUp: () => walk(2 - Math.floor(list.clientHeight / ROW)),
  Home: () => walk(-Infinity),
  End: () => walk(Infinity),
  Enter: () => current && choose(current, true),
};

list.addEventListener("scroll", () => drawRows());
list.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target !== list || !LIST_KEYS[event.key]) return;
  event.preventDefault();
  LIST_KEYS[event.key]();
});
new ResizeObserver(() => list.clientHeight !== drawnHeight && drawRows(true)).observe(list);
document.getElementById("which").append(...Object.keys(FILTERS).map((name) => el("option", {}, name)));
document.getElementById("which").addEventListener("change", refresh);
document.getElementById("search").addEventListener("input", refresh);
document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
