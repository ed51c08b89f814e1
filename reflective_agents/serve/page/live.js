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
    this.sent = [];
    this.left = new AbortController();
    this.known = { ...NOTHING };
    this.growing = new Growing(null, 0, "");
    this.node = null;
    this.answer = "";
    this.waiting = [];
    this.timer = null;
  }

  /** Take messages that were just sent: they are shown until the server shows them. */
  put(sent) {
    this.sent = sent;
    this.expected = this.known.messages.length + sent.length;
  }

  /** Look at what the server has stored, and show it. */
  async look() {
    const known = await get(`threads/${this.id}`);
    if (open !== this) return;
    if (known.status !== "running" || known.messages.length >= this.expected) this.sent = [];
    this.known = known;
    const question = known.messages.findLast((message) => message.type === "human")?.text ?? "";
    if (known.tree || known.events > this.growing.seen || !this.growing.seen)
      this.growing = new Growing(known.tree, known.events, question);
    this.show();
  }

  /** Look, then follow the run as long as one is under way. */
  async watch() {
    await this.look();
    while (open === this && this.known.status === "running") {
      await follow(this.id, this.left.signal, (event) => this.take(event));
      this.answer = "";
      await this.look();
    }
  }

  take(event) {
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
    showSaid(this.messages, this.answer, edit);
    this.showState();
  }

  get status() {
    if (this.sent.length) return this.id ? "running" : "sending";
    return this.known.status;
  }

  get messages() {
    return [...this.known.messages, ...this.sent];
  }

  lookLater() {
    this.later ??= setTimeout(() => {
      this.later = null;
      if (open === this && this.known.status === "running") this.look().catch(complain);
    }, LOOK);
  }

  show() {
    const { lists, steps } = this.known;
    const question = this.messages.find(({ type, file }) => type === "human" && file === undefined)?.text ?? "";
    write(document.getElementById("title"), cut(question, 200) || "A new question");
    write(document.querySelector("title"), [cut(question, 60), "Reflective agents"].filter(Boolean).join(" · "));
    document.body.classList.toggle("new", !this.id && !this.sent.length);
    this.showState();
    if (!edited) chooseStrategy(this.known.strategy);
    document.getElementById("step").value = Math.max(steps - 1, 1);
    showSaid(this.messages, this.answer, edit);
    showLists(lists);
    this.showView();
  }

  /** Show how far the run has come, and what it has cost so far. */
  showState() {
    const { strategy, outcome, usage } = this.known;
    const { status } = this;
    const current = this.growing.picture.usage ?? {};
    const spent = status === "running" && current.model_calls ? current : usage;
    const cost = spent ? ` · ${counted(spent.model_calls, "call")}, ${counted(spent.total_tokens, "token")}` : "";
    const end = outcome && status === "ended" ? `: ${outcome.status.replace("_", " ")}, ${outcome.reason}` : "";
    write(document.getElementById("state"), status === "empty" ? "" : `${strategy} ${status}${end}${cost}`.trim());
  }

  /** Show what has changed of the tree or the day; `all` of it to a view that was just opened. */
  showView(all = false) {
    const { day } = this.known;
    const { begun } = this.growing;
    document.body.classList.toggle("with-tree", begun);
    document.body.classList.toggle("with-view", begun || Boolean(day));
    enable(this.status, begun, this.node);
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
  if (error.status === 401) document.getElementById("key-part").open = true;
}

/** The thread that the address names; null if it names none. */
function named() {
  return /^#([\w-]+)$/.exec(location.hash)?.[1] ?? null;
}

/** Open a thread, or a new one if there is no id; `sent` is what was just asked there. */
function show(id, sent = []) {
  open?.leave();
  const before = open;
  open = new Open(id);
  if (before?.id === id) Object.assign(open, { known: before.known, growing: before.growing, node: before.node });
  else turn("tree", true); // what was folded and selected there belongs to another tree
  open.put(sent);
  document.getElementById("events").replaceChildren();
  if (named() !== id) history.pushState(null, "", id ? `#${id}` : location.pathname);
  say("");
  open.show();
  if (id) open.watch().catch(complain).finally(list);
  list();
}

/** Open a thread, with its strategy's usual settings. */
function visit(id) {
  keep();
  fillSettings();
  show(id);
  if (!id) document.getElementById("question").focus();
}

/** The question that is edited. */
let edited = null;

/** Edit a question: it is asked anew. One that the thread does not hold can be asked there again. */
function edit(message) {
  edited = message.id ?? null;
  const question = document.getElementById("question");
  question.value = message.text;
  document.getElementById("editing").hidden = !edited;
  if (edited) document.getElementById("strategy").disabled = false;
  question.focus();
}

/** Edit nothing any more. */
function keep() {
  edited = null;
  document.getElementById("editing").hidden = true;
  if (open) chooseStrategy(open.known.strategy);
}

function send(event) {
  event.preventDefault();
  const question = document.getElementById("question");
  const [text, files] = [question.value, attached];
  const fill = (left, added) => {
    question.value = left;
    attached = added;
    showFiles();
  };
  sendQuestion(document.getElementById("strategy").value, text, files).catch((error) => {
    fill(question.value || text, [...files, ...attached]);
    complain(error);
  });
  fill("", []);
}

async function sendQuestion(strategy, question, files = []) {
  const send = document.getElementById("send");
  const body = { strategy, question, files, settings: chosenSettings(), thread_id: open.id, edits: edited };
  const sent = [...files.map(asMessage), { type: "human", text: question }];
  const thread = open;
  send.disabled = true;
  thread.put(sent);
  thread.show();
  try {
    const { thread_id: id } = await post("threads", body);
    keep();
    if (open === thread) show(id, sent);
    else list();
  } catch (error) {
    thread.put([]);
    if (open === thread) thread.show();
    throw error;
  } finally {
    send.disabled = false;
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
    enable(open.status, true, open.node);
  }
}

function start() {
  window.addEventListener("message", heard);
  window.addEventListener("hashchange", () => {
    if (named() !== open.id) visit(named());
  });
  document.getElementById("keep").addEventListener("click", keep);
  document.getElementById("menu").open = matchMedia("(min-width: 1100px)").matches;
  watchFiles();
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
  fillStrategies().then(showExamples).catch(complain);
  show(named());
}

start();
