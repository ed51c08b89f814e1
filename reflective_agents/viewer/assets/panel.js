// The side panel: everything that is known of one node at one moment, and of the run.

/** What the panel shows, as a text. */
let inPanel;

/** Fill the panel, unless it shows just that. `choose` is called with the id of a node named in it that is clicked. */
function fillPanel(panel, node, frame, choose) {
  const { children, changes, ...own } = node;
  const { question, answer, outcome, usage, reflections, path } = picture;
  const shows = [own, figuresAt(node, frame), marksOf(node, frame), picture.frames[node.born]?.calls];
  const all = JSON.stringify([...shows, question, answer, outcome, usage, reflections, path]);
  if (all === inPanel) return;
  inPanel = all;
  const same = panel.dataset.shows === node.id;
  panel.dataset.shows = node.id;
  refill(panel, same, [
    heading(node, frame),
    trail(node, choose),
    figuresList(node, frame),
    terms(node),
    ...[
      ["Thought", node.thought],
      ["Action", node.kind === "answer" && node.messages.length ? "" : node.action],
      ["Observation", node.observation],
      ["Critique", node.critique],
    ]
      .map(([title, text]) => (text ? block(title, prose(text)) : null))
      .filter(Boolean),
    ...reflectionsOf(node),
    messages(node),
    run(choose),
  ]);
}

/** Put parts into the panel; of the same node, what is open stays open, and what has the focus keeps it. */
function refill(panel, same, parts) {
  const stops = () => [...panel.querySelectorAll("summary, button, [tabindex]")];
  const open = new Map([...panel.querySelectorAll("details")].map((one) => [one.dataset.block, one.open]));
  const focus = stops().indexOf(document.activeElement);
  panel.replaceChildren(...parts);
  if (!same) return;
  for (const one of panel.querySelectorAll("details")) one.open = open.get(one.dataset.block) ?? one.open;
  stops()[focus]?.focus();
}

function heading(node, frame) {
  const sign = draw("svg", {
    class: `sign node ${node.kind}${node.solved ? " solved" : ""}`,
    viewBox: "-12 -12 24 24",
    "aria-hidden": "true",
  });
  sign.append(...glyph(node.kind, endOf(node, frame)));
  sign.style.setProperty("--q", figuresAt(node, frame).q ?? 0);
  const chips = marksOf(node, frame).map((mark) => el("span", { class: "chip" }, mark));
  const samples = node.samples > 1 ? [el("span", { class: "chip" }, `${node.samples} identical samples`)] : [];
  return el("div", { class: "heading" }, sign, el("h2", {}, `${node.kind} `, el("code", {}, node.id)), chips, samples);
}

function trail(node, choose) {
  const steps = pathTo(node)
    .slice(0, -1)
    .map((above) => el("li", {}, jump(above.id, choose)));
  return steps.length
    ? el("nav", { "aria-label": "Way from the root" }, el("ol", { class: "trail" }, steps))
    : el("nav");
}

function jump(id, choose) {
  const button = el("button", { type: "button", class: "link" }, id);
  button.addEventListener("click", () => choose(id));
  return button;
}

const MEANINGS = { mean: "mean over visits", max: "highest passed up" };

function figuresList(node, frame) {
  const { n, q, uct, parentVisits } = figuresAt(node, frame);
  const added = picture.frames[node.born];
  const rows = [
    ["Q", number(q), n || q === null ? MEANINGS[picture.aggregate] : "prior, until visited"],
    ["N", number(n, 0), "visits"],
    ["UCT", number(uct), uct === null ? "" : `w ${picture.weight}, parent N ${parentVisits}`],
    ["score", number(node.score), "its own value"],
    ["reward", number(node.reward), "by the environment"],
    ["depth", number(node.depth, 0)],
    ["added", `step ${node.born + 1}`, cost(added)],
    node.model ? ["model", node.model] : null,
  ].filter(Boolean);
  return el(
    "dl",
    { class: "figures" },
    rows.map(([name, value, note]) =>
      el(
        "div",
        { "data-figure": name },
        el("dt", {}, name),
        el("dd", {}, value),
        note ? el("dd", { class: "note" }, note) : null,
      ),
    ),
  );
}

function cost(frame) {
  return frame.calls || frame.tokens ? `${counted(frame.calls, "call")}, ${counted(frame.tokens, "token")}` : "";
}

function terms(node) {
  const rows = Object.entries(node.terms).map(([name, value]) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      el("td", {}, number(value)),
      el("td", { class: "gauge" }, gauge(value)),
    ),
  );
  return rows.length
    ? block("Value", el("table", { class: "terms" }, el("tbody", {}, rows)))
    : el("span", { hidden: "" });
}

function gauge(value) {
  const bar = draw("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" });
  const width = Math.min(Math.max(value, 0), 1) * 100;
  bar.append(draw("rect", { class: "rail", width: 100, height: 6 }), draw("rect", { class: "bar", width, height: 6 }));
  return bar;
}

function block(title, ...content) {
  return el("section", { "data-block": title }, el("h3", {}, title), ...content);
}

/** A text of a model or a tool, as it is. Results of a search, which come as JSON, are set as a list. */
function prose(text) {
  return resultsIn(text) ?? el("div", { class: "text", dir: "auto", tabindex: text.length > 300 ? 0 : null }, text);
}

function resultsIn(text) {
  if (!text.startsWith("[{")) return null;
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    return null;
  }
  if (!found.every((item) => typeof item?.content === "string" && typeof item.title === "string")) return null;
  const items = found.map((item) =>
    el(
      "li",
      { dir: "auto" },
      el("b", {}, item.title),
      el("span", { class: "url" }, String(item.url ?? "")),
      el("p", {}, item.content),
    ),
  );
  return el("ol", { class: "text results", tabindex: 0 }, items);
}

function reflectionsOf(node) {
  const texts = picture.reflections.filter((drawn) => drawn.node === node.id).map((drawn) => drawn.text);
  return texts.map((text) => block("Reflection", prose(text)));
}

function messages(node) {
  if (!node.messages.length) return el("span", { hidden: "" });
  const items = node.messages.map((message) =>
    el(
      "li",
      { "data-role": message.type },
      el("span", { class: "role" }, message.type),
      message.content ? prose(message.content) : null,
      message.tool_calls.map((call) =>
        el("div", { class: "text call" }, `${call.name} ${JSON.stringify(call.args, null, 1)}`),
      ),
    ),
  );
  const open = node.kind !== "action";
  return el(
    "details",
    { open: open ? "" : null, "data-block": "Messages" },
    el("summary", {}, `Messages (${items.length})`),
    el("ol", { class: "messages" }, items),
  );
}

function run(choose) {
  const { outcome, usage } = picture;
  const end = picture.path.at(-1);
  const spentOn = ["model_calls", "total_tokens", "seconds", ...(usage.cost ? ["cost"] : [])].filter(
    (name) => usage[name] !== undefined,
  );
  const learned = picture.reflections.map((drawn) =>
    el("li", {}, nodes.has(drawn.node) ? jump(drawn.node, choose) : null, prose(drawn.text)),
  );
  return el(
    "details",
    { class: "run", "data-block": "Run" },
    el("summary", {}, "The whole run"),
    block("Question", prose(picture.question)),
    picture.answer === null
      ? null
      : block("Answer", prose(picture.answer), end ? el("p", {}, "from ", jump(end, choose)) : null),
    outcome ? block("Outcome", prose(`${outcome.status}: ${outcome.reason}`)) : null,
    spentOn.length
      ? block(
          "Cost",
          el(
            "p",
            {},
            spentOn
              .map((name) => `${name.replace("_", " ")} ${number(usage[name], Number.isInteger(usage[name]) ? 0 : 1)}`)
              .join(", "),
          ),
        )
      : null,
    learned.length ? block("Reflections", el("ol", { class: "learned" }, learned)) : null,
  );
}
