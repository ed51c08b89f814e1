// What there is to open: the conversations of whoever looks at the page, and examples to begin with.

/** Questions that show what the page can do, if their strategy is offered. */
const EXAMPLES = [
  ["lats", "What does UCT balance, how do agents keep lessons from failures, and which budgets limit calls?"],
  ["react", "Who proposed Reflexion, and how does it work?"],
  ["plan", "How do generative agents remember and plan?"],
];

/** List the conversations. */
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

/** Offer questions to begin with. */
function showExamples() {
  const offered = EXAMPLES.filter(([strategy]) => strategies.has(strategy));
  const items = offered.map(([strategy, question]) => {
    const note = el("span", { class: "note" }, `${strategy}: ${strategies.get(strategy).does}`);
    const button = el("button", { type: "button" }, el("span", { class: "what" }, question), note);
    button.addEventListener("click", () => {
      document.getElementById("strategy").value = strategy;
      fillSettings();
      sendQuestion(strategy, question).catch(complain);
    });
    return el("li", {}, button);
  });
  document.getElementById("examples").replaceChildren(...items);
}
