// The page: which thread is open, what is known of it, and what its run tells.

const frame = document.getElementById("tree");
const problem = document.getElementById("problem");
/** Milliseconds between two drawings of a growing tree, and between two looks at what a run has stored. */
const DRAW = 200;
const LOOK = 1500;

const NOTHING = { status: "empty", strategy: "", steps: 0, messages: [], lists: {}, changes: 0, events: 0 };

let open = null;

/** A thread that is looked at. */
class Open {
  constructor(id) {
    this.id = id;
    this.left = new AbortController();
    this.known = { ...NOTHING };
    this.growing = new Growing(null, 0, "");
    this.node = null;
    this.answer = "";
    this.waiting = [];
    this.timer = null;
  }

  /** Look at what the server has stored, and show it. */
  async look() {
    const known = await get(`threads/${this.id}`);
    if (open !== this) return;
    this.known = known;
    const question = known.messages.findLast((said) => said.type === "human")?.text ?? "";
    if (known.tree || known.events > this.growing.seen || !this.growing.seen)
      this.growing = new Growing(known.tree, known.events, question);
    this.show();
  }

  /** Look, then follow the run as long as one is under way. */
  async watch() {
    await this.look();
    while (open === this && this.known.status === "running") {
      await follow(this.id, this.left.signal, (event) => this.told(event));
      this.answer = "";
      await this.look();
    }
  }

  told(event) {
    if (event.token !== undefined) this.answer += event.token;
    else if (event.event === "withdrawn") this.answer = "";
    if (event.error) say(event.error);
    if (event.event) this.waiting.push(event);
    this.timer ??= setTimeout(() => this.draw(), DRAW);
  }

  draw() {
    this.timer = null;
    if (open !== this) return;
    const events = this.waiting.splice(0);
    addEvents(events);
    const grown = events.map((event) => this.growing.take(event)).some(Boolean);
    if (!this.known.strategy) this.lookLater();
    if (grown) this.showView();
    else if (events.length && !this.growing.begun) this.lookLater();
    showSaid(this.known.messages, this.answer);
    this.showState();
  }

  lookLater() {
    this.later ??= setTimeout(() => {
      this.later = null;
      if (open === this && this.known.status === "running") this.look().catch(complain);
    }, LOOK);
  }

  show() {
    const { messages, lists, steps } = this.known;
    const asked = messages.find((said) => said.type === "human")?.text ?? "";
    document.getElementById("title").textContent = cut(asked, 200) || "A new question";
    this.showState();
    chooseStrategy(this.known.strategy);
    document.getElementById("step").value = Math.max(steps - 1, 1);
    showSaid(messages, this.answer);
    showLists(lists);
    this.showView();
  }

  /** Show how far the run has come, and what it has cost so far. */
  showState() {
    const { strategy, status, outcome, usage } = this.known;
    const told = this.growing.picture.usage ?? {};
    const spent = status === "running" && told.model_calls ? told : usage;
    const cost = spent ? ` · ${counted(spent.model_calls, "call")}, ${counted(spent.total_tokens, "token")}` : "";
    const end = outcome && status === "ended" ? `: ${outcome.status.replace("_", " ")}, ${outcome.reason}` : "";
    write(document.getElementById("state"), this.id ? `${strategy} ${status}${end}${cost}` : "");
  }

  /** Show what has changed of the tree or the day; `all` of it to a view that was just opened. */
  showView(all = false) {
    const { day } = this.known;
    const { begun } = this.growing;
    document.body.classList.toggle("with-tree", begun);
    document.body.classList.toggle("with-view", begun || Boolean(day));
    enable(this.known.status, begun, this.node);
    if (!begun && !day) return;
    turn(day ? "day" : "tree");
    if (frame.dataset.ready) frame.contentWindow.postMessage({ show: day ?? this.growing.news(all) }, location.origin);
  }

  leave() {
    this.left.abort();
    clearTimeout(this.timer);
  }
}

/** Turn to a view, unless it is open; or open it `anew`, with nothing in it. It says when it is there. */
function turn(name, anew = false) {
  if (frame.dataset.view === name && !anew) return;
  frame.dataset.view = name;
  frame.dataset.ready = "";
  frame.title = name === "day" ? "The day of the town" : "The tree of the run";
  frame.src = `/live/${name}`;
}

function say(text) {
  problem.textContent = text;
}

function complain(error) {
  if (error.name !== "AbortError") say(error.message);
}

/** Open a thread, or a new one if there is no id. */
function show(id) {
  open?.leave();
  const before = open;
  open = new Open(id);
  if (before?.id === id) Object.assign(open, { known: before.known, growing: before.growing, node: before.node });
  else turn("tree", true); // what was folded and selected there belongs to another tree
  document.getElementById("events").replaceChildren();
  history.replaceState(null, "", id ? `#${id}` : location.pathname);
  say("");
  open.show();
  if (id) open.watch().catch(complain).finally(list);
  list();
}

/** Open a thread, with its strategy's usual settings. */
function visit(id) {
  fillSettings();
  show(id);
}

/** List the runs. */
async function list() {
  try {
    const threads = await get("threads");
    const items = threads.map((one) => {
      const title = cut(one.question || one.strategy || one.thread_id, 70);
      const current = open?.id === one.thread_id ? "page" : null;
      const made = el(
        "button",
        { type: "button", "aria-current": current, "data-thread": one.thread_id },
        el("span", { class: "what", dir: "auto" }, title),
        el("span", { class: "note" }, `${one.strategy} · ${one.status}`),
      );
      made.addEventListener("click", () => visit(one.thread_id));
      return el("li", {}, made);
    });
    const place = document.getElementById("threads");
    const focus = place.contains(document.activeElement) && document.activeElement.dataset.thread;
    place.replaceChildren(...items);
    if (focus) place.querySelector(`[data-thread="${CSS.escape(focus)}"]`)?.focus();
  } catch (error) {
    complain(error);
  }
}

async function send(event) {
  event.preventDefault();
  const question = document.getElementById("question");
  const asked = { strategy: document.getElementById("strategy").value, question: question.value };
  try {
    const { thread_id: id } = await post("threads", { ...asked, settings: chosenSettings(), thread_id: open.id });
    question.value = "";
    show(id);
  } catch (error) {
    complain(error);
  }
}

async function steer(event) {
  const name = event.currentTarget.dataset.do;
  try {
    say("");
    await post(`threads/${open.id}`, { do: name, seen: open.known.changes, ...ORDERS[name](open.node) });
    show(open.id);
  } catch (error) {
    complain(error);
    await open.look().catch(complain);
  }
}

function heard(event) {
  if (event.source !== frame.contentWindow || event.origin !== location.origin) return;
  const { ready, selected } = event.data ?? {};
  if (ready) {
    frame.dataset.ready = ready.endsWith(frame.dataset.view) ? "yes" : "";
    open?.showView(true);
  } else if (open && selected !== undefined) {
    open.node = selected;
    enable(open.known.status, true, open.node);
  }
}

function start() {
  window.addEventListener("message", heard);
  document.getElementById("ask").addEventListener("submit", send);
  document.getElementById("strategy").addEventListener("change", fillSettings);
  document.getElementById("new").addEventListener("click", () => visit(null));
  document.getElementById("question").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) document.getElementById("ask").requestSubmit();
  });
  document.getElementById("steering").addEventListener("submit", (event) => event.preventDefault());
  for (const button of document.querySelectorAll("[data-do]")) button.addEventListener("click", steer);
  document.getElementById("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    key.set(document.getElementById("key").value);
    begin();
  });
  begin();
}

/** Show what the holder of the key may see. */
function begin() {
  say("");
  document.getElementById("threads").replaceChildren();
  fillStrategies().catch(complain);
  show(location.hash.slice(1) || null);
}

start();
