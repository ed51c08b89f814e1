// What the panel says of the moment, the conversation or the memory that is selected.

const panel = document.getElementById("panel");

/** Show a heading and what belongs below it. */
function tell(title, ...parts) {
  panel.replaceChildren(el("h2", { dir: "auto" }, title), ...parts.flat().filter(Boolean));
  panel.scrollTop = 0;
}

function heading(text) {
  return el("h3", {}, text);
}

function words(text) {
  return el("p", { class: "text", dir: "auto" }, text);
}

function facts(pairs) {
  const rows = Object.entries(pairs).filter(([, value]) => value !== "" && value !== undefined);
  const cells = rows.map(([name, value]) => [el("dt", {}, name), el("dd", { dir: "auto" }, String(value))]);
  return el("dl", {}, ...cells.flat());
}

/** A button that shows something in the panel. */
function link(text, does, attributes = {}) {
  const made = el("button", { type: "button", class: "link", dir: "auto", ...attributes }, text);
  made.addEventListener("click", does);
  return made;
}

function memoryLink(memory) {
  const text = `${timeOf(memory)} ${HOW[memory.how]}: ${memory.text}`;
  return el("li", {}, link(text, () => showMemory(memory), { "data-memory": memory.id }));
}

/** A table of what was retrieved: the score, and the three terms that make it, as numbers and as bars. */
function terms(rows, label, title) {
  const columns = [label, "score", "recency", "importance", "relevance"];
  const head = el("tr", {}, ...columns.map((column) => el("th", { scope: "col" }, column)));
  const lines = rows.map((row) =>
    el("tr", {}, el("td", { dir: "auto" }, title(row)), ...columns.slice(1).map((column) => term(row[column]))),
  );
  const table = el("table", { class: "terms" }, el("thead", {}, head), el("tbody", {}, ...lines));
  return el("div", { class: "scroll" }, table);
}

function term(value) {
  const bar = el("span", { class: "bar", "aria-hidden": "true" });
  bar.style.setProperty("--share", value);
  return el("td", { class: "number" }, number(value), bar);
}

/** What an agent does in a span of time, what it remembers of it, and what it retrieved. */
function showSpan(span) {
  const agent = picture.agents.find((one) => one.name === span.agent);
  const kept = agent.memories.filter((one) => span.steps.includes(one.step));
  const retrievals = picture.retrievals.filter((one) => one.agent === span.agent && span.steps.includes(one.step));
  tell(
    `${span.agent}, ${span.time}`,
    words(span.doing),
    facts({ where: span.place, until: after(span.time, span.steps.length * picture.minutes) }),
    span.talks.map((talk) => el("p", {}, link(`conversation ${talk}`, () => showTalk(talkOf(talk))))),
    kept.length ? [heading("Remembers of it"), el("ul", {}, ...kept.map(memoryLink))] : null,
    retrievals.flatMap((one) => [heading(`Retrieves for: ${one.query}`), terms(one.found, "memory", foundLink)]),
  );
}

function foundLink(found) {
  const memory = memories.get(found.id);
  return memory ? link(memory.text, () => showMemory(memory)) : "(forgotten)";
}

function talkOf(number) {
  return picture.conversations.find((one) => one.talk === number);
}

function linesOf(talk) {
  const lines = talk.lines.map((line) => {
    const speaker = `speaker${talk.agents.indexOf(line.agent)}`;
    return el("li", { class: speaker }, el("b", { dir: "auto" }, line.agent), words(line.text));
  });
  return el("ol", { class: "lines" }, ...lines);
}

function showTalk(talk) {
  const kept = [...memories.values()].filter((one) => one.talk === talk.talk);
  tell(
    `Conversation ${talk.talk}`,
    facts({ when: talk.time, where: talk.place, who: talk.agents.join(", "), "begun for": talk.why }),
    linesOf(talk),
    heading("What they remember of it"),
    ...talk.agents.flatMap((name) => [
      el("h4", { dir: "auto" }, name),
      el("ul", {}, ...kept.filter((one) => one.agent === name).map(memoryLink)),
    ]),
  );
}

function showMemory(memory) {
  const found = retrieved.get(memory.id) ?? [];
  const below = memory.evidence.map((id) => memories.get(id)).filter(Boolean);
  const above = derived.get(memory.id) ?? [];
  tell(
    `${memory.agent}’s memory`,
    words(memory.text),
    facts({
      when: timeOf(memory),
      how: HOW[memory.how] + (memory.source ? ` (${memory.source})` : ""),
      importance: memory.importance,
      "last access": timeOf({ created: memory.accessed }),
      archive: memory.archived ? "yes: a reflection rests on it" : "no",
    }),
    memory.talk ? el("p", {}, link(`conversation ${memory.talk}`, () => showTalk(talkOf(memory.talk)))) : null,
    below.length ? [heading("Because of"), el("ul", {}, ...below.map(memoryLink))] : null,
    above.length ? [heading("Led to"), el("ul", {}, ...above.map(memoryLink))] : null,
    heading(`Retrieved ${counted(found.length, "time")}`),
    found.length ? terms(found, "for", (row) => `${row.time} ${row.query}`) : null,
  );
}
