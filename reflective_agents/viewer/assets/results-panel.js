// The task that is selected: what was asked and answered, what it took, and what each run leaves behind.

const panel = document.getElementById("panel");
let run = 0;

/** Select a task; `enter` moves the reader to it. */
async function choose(task, enter = false) {
  current = task;
  history.replaceState(null, "", `#task=${encodeURIComponent(task.id.toWellFormed())}`);
  mark(task);
  await drawPanel(task);
  if (current !== task) return;
  panel.scrollTop = 0;
  document.body.classList.toggle("reading", enter || document.body.classList.contains("reading"));
  if (enter) panel.focus({ preventScroll: true });
}

async function drawPanel(task) {
  const cell = task.cells[run];
  const left = await transcript(cell);
  if (current !== task) return;
  for (const address of opened.splice(0)) URL.revokeObjectURL(address);
  const links = left ? await pagesOf(left) : [];
  panel.replaceChildren(
    turning(),
    el("h2", { dir: "auto" }, task.id),
    ...(several ? [tabs(task)] : []),
    block("Question", task.question),
    block("Right answer", task.gold ?? "not known"),
    el("h3", {}, "Answer ", signOf(task, run), ` ${NAMES[task.verdicts[run]]}`),
    words(cell?.answer ?? "no answer"),
    ...(cell?.extracted == null ? [] : [block("Answer taken from it, which counted", cell.extracted)]),
    endOf(cell) ? words(endOf(cell), "soft") : null,
    cell ? cost(cell) : null,
    ...links,
    ...(left ? leftBehind(left) : [el("p", { class: "soft" }, "No transcript was kept.")]),
  );
}

function turning() {
  const place = shownTasks.indexOf(current);
  const buttons = [
    ["‹", "Task before", () => walk(-1), place <= 0],
    ["›", "Next task", () => walk(1), place >= shownTasks.length - 1],
    ["List", "Back to the list", back, false],
  ].map(([text, label, does, off]) => {
    const button = el("button", { type: "button", "aria-label": label, disabled: off ? "" : null }, text);
    button.addEventListener("click", does);
    return button;
  });
  buttons[2].className = "back";
  return el(
    "div",
    { class: "buttons" },
    ...buttons,
    el("span", { class: "soft" }, `${place + 1} of ${shownTasks.length}`),
  );
}

function back() {
  document.body.classList.remove("reading");
  list.focus();
}

/** One button a run; the answers of all of them can be walked through. */
function tabs(task) {
  const made = runs.map((name, place) => {
    const sign = signOf(task, place);
    const button = el(
      "button",
      { type: "button", "aria-pressed": String(place === run), dir: "auto" },
      sign,
      ` ${name}`,
    );
    button.addEventListener("click", async () => {
      run = place;
      await drawPanel(task);
      panel.querySelectorAll("[aria-pressed]")[place]?.focus();
    });
    return button;
  });
  return el("div", { class: "buttons", role: "group", "aria-label": "Run" }, ...made);
}

function block(name, text) {
  return el("section", {}, el("h3", {}, name), words(text));
}

function words(text, more = "") {
  return el("div", { class: `text ${more}`, dir: "auto" }, text);
}

function cost(cell) {
  const entries = [
    ["calls", number(cell.calls, 0)],
    ...(cell.cached ? [["from the cache", number(cell.cached, 0)]] : []),
    ["tokens", number(cell.tokens, 0)],
    ...(cell.cost ? [["cost", money(cell.cost)]] : []),
    ["seconds", number(cell.seconds, 1)],
    ...Object.entries(cell.scores).map(([name, value]) => [name, number(value)]),
  ];
  return terms(entries);
}

function terms(entries) {
  return el("dl", { class: "terms" }, ...entries.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** Links to the tree and to the day, each a page of its own that opens in a new tab. */
async function pagesOf(left) {
  const kinds = Object.entries({ tree: "Search tree", day: "Day in the town" }).filter(([kind]) => left[kind]);
  return Promise.all(
    kinds.map(async ([kind, name]) =>
      el("p", {}, el("a", { href: await addressOf(kind, left[kind]), target: "_blank" }, `${name} ↗`)),
    ),
  );
}

function leftBehind(left) {
  const { support, ...more } = left.shown;
  return [
    ...(support ? supported(support) : []),
    ...(left.dropped ? [el("p", { class: "soft" }, left.dropped)] : []),
    ...some("Trials", left.trials, trial),
    ...some("Reflections", left.reflections, (text) => words(text, "quote")),
    ...some("Messages", left.messages, message),
    ...Object.entries(more).map(([name, value]) => folded(name.replaceAll("_", " "), value)),
  ];
}

/** What each sentence of the answer rests on, and whether they answer the question. */
function supported(support) {
  const answered = support.answered ?? `not checked: ${support.left_out}`;
  return [...some("Sentences", support.sentences, sentence), terms([["answered", answered]])];
}

function sentence(one) {
  const entries = [
    ["support", one.support.replace("_", " ")],
    ["cites", one.cites.join(", ") || "nothing"],
    ...(one.words ? [["words", one.words]] : []),
  ];
  return el("article", {}, words(one.text), terms(entries));
}

function some(name, entries, show) {
  return entries.length ? [el("h3", {}, `${name} (${entries.length})`), ...entries.map(show)] : [];
}

function trial(made, place) {
  const sign = made.solved ? "✓" : "✗";
  const line = `${sign} Trial ${made.trial ?? place + 1}: ${cut(String(made.answer ?? "no answer"), 90)}`;
  return folded(line, made);
}

function message(one) {
  const calls = one.tool_calls.map((call) => words(`${call.name}(${JSON.stringify(call.args)})`, "code"));
  return el("article", { class: one.type }, el("h4", {}, one.type), one.content ? words(one.content) : null, ...calls);
}

/** What is long or belongs to one strategy only: drawn when it is opened. */
function folded(name, value) {
  const made = el("details", {}, el("summary", { dir: "auto" }, name));
  made.addEventListener("toggle", () => made.childElementCount > 1 || made.append(shown(value)), { once: true });
  return made;
}

function shown(value) {
  if (Array.isArray(value)) return el("ol", {}, ...value.map((one) => el("li", {}, shown(one))));
  if (value === null || typeof value !== "object") return words(String(value ?? "–"));
  return terms(Object.entries(value).map(([name, inner]) => [name.replaceAll("_", " "), shown(inner)]));
}

document.addEventListener("keydown", (event) => event.key === "Escape" && back());
