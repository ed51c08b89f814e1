// The form: strategies with their settings, as the server describes them.

const strategies = new Map();

/** Fill the list of strategies. */
async function fillStrategies() {
  const list = document.getElementById("strategy");
  const offered = await get("strategies");
  strategies.clear();
  for (const one of offered) strategies.set(one.name, one);
  list.replaceChildren(...offered.map((one) => el("option", { value: one.name }, one.name)));
  list.value = strategies.has("lats") ? "lats" : offered[0]?.name;
  fillSettings();
}

/** Choose a strategy, of which a thread keeps to its own; any can be chosen where there is none yet. */
function chooseStrategy(name) {
  const list = document.getElementById("strategy");
  list.disabled = Boolean(name);
  if (!name || list.value === name) return;
  list.value = name;
  fillSettings();
}

/** Show the settings of the chosen strategy. */
function fillSettings() {
  const chosen = strategies.get(document.getElementById("strategy").value);
  const about = chosen ? [chosen.does, `Use it when ${chosen.use_when}.`, modelOf(chosen)] : [];
  write(document.getElementById("hint"), about.join(" "));
  document.getElementById("settings").replaceChildren(...groups(chosen?.settings ?? []));
}

/** The settings in their groups, which the server sends in order; the strategy's own and the models are open. */
function groups(settings) {
  const names = [...new Set(settings.map(([, schema]) => schema.group))];
  return names.map((name, index) => {
    const fields = settings.filter(([, schema]) => schema.group === name).map(field);
    return el("details", { class: "group", open: index < 2 }, el("summary", {}, name), ...fields);
  });
}

function modelOf({ model }) {
  if (model !== "offline") return model ? `Model: ${model}.` : "";
  return "The offline model answers: it is no language model, and copies sentences that it finds.";
}

function field([name, schema]) {
  const id = `setting-${name}`;
  const label = el("label", { for: id }, name);
  const note = el("p", { class: "note", id: `${id}-note` }, schema.description ?? "");
  return el("div", { class: "setting" }, label, input(name, id, schema), note);
}

function input(name, id, schema) {
  const kinds = schema.anyOf ?? [schema];
  const choices = kinds.flatMap((kind) => kind.enum ?? (kind.type === "boolean" ? [true, false] : []));
  const shared = { id, "data-setting": name, "aria-describedby": `${id}-note` };
  if (choices.length) {
    const option = (choice) => el("option", { value: String(choice) }, String(choice) || usual(schema));
    const options = ["", ...choices].map(option);
    return el("select", shared, ...options);
  }
  const number = kinds.some((kind) => kind.type === "integer" || kind.type === "number");
  const bounds = kinds.find((kind) => kind.minimum !== undefined || kind.maximum !== undefined) ?? {};
  const type = number ? { type: "number", step: "any", min: bounds.minimum, max: bounds.maximum } : { type: "text" };
  return el("input", { ...shared, ...type, placeholder: usual(schema) });
}

function usual(schema) {
  const usually = schema.default;
  return usually === null || usually === undefined ? "" : JSON.stringify(usually);
}

/** The settings that were chosen. */
function chosenSettings() {
  const given = {};
  for (const one of document.querySelectorAll("[data-setting]")) {
    if (one.value === "") continue;
    given[one.dataset.setting] = read(one.value, one.type);
  }
  return given;
}

function read(text, type) {
  if (type === "number") return Number(text);
  if (text === "true" || text === "false") return text === "true";
  return text;
}
