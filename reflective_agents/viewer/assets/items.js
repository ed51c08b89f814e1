// What runs have learned under a name: a list to search, each item with its counts and its history.

const { title, items } = JSON.parse(document.getElementById("items").textContent);
const AT_ONCE = 200;
const search = document.getElementById("search");
const which = document.getElementById("which");
const list = document.getElementById("list");
const more = document.getElementById("more");
const byId = new Map(items.map((item) => [item.id, item]));
const texts = new Map(items.map((item) => [item, JSON.stringify(item).toLowerCase()]));
let found = [];

const SHOWS = {
  shown: (item) => item.last_shown !== null,
  changed: (item) => item.history.length > 0,
};

function matches(item) {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = which.value;
  const kept = !wanted || (SHOWS[wanted]?.(item) ?? item.status === wanted);
  return kept && words.every((word) => texts.get(item).includes(word));
}

function when(seconds) {
  return new Date(seconds * 1000).toISOString().slice(0, 10);
}

/** What is known of an item in a line. */
function counts(item) {
  const ended = `shown in ${item.solved} solved and ${counted(item.failed, "failed run")}`;
  const origin = `from a ${item.kind} of ${when(item.created)}`;
  return [item.status, origin, `drawn ${counted(item.seen, "time")}`, ended].join(" · ");
}

function term(name, ...words) {
  return words.some(Boolean) ? [el("dt", {}, name), el("dd", { dir: "auto" }, ...words)] : [];
}

function links(ids) {
  return ids.flatMap((id) => [el("a", { href: `#${id}` }, byId.get(id)?.title ?? `${id} (forgotten)`), " "]);
}

function changes(item) {
  return item.history.map((change) =>
    el("div", {}, `${change.what} ${when(change.at)}: ${Object.values(change.after).join("; ")}`),
  );
}

function shown(item) {
  return el(
    "details",
    { class: item.status, id: item.id },
    el("summary", {}, el("span", { class: "name", dir: "auto" }, item.title), el("small", {}, counts(item))),
    el(
      "dl",
      {},
      term("applies when", item.applies_when),
      term("advice", item.advice),
      term("evidence", item.evidence),
      term("contradicts", ...links(item.against)),
      term("history", ...changes(item)),
      term("id", item.id),
    ),
  );
}

function showMore() {
  list.append(...found.slice(list.childElementCount, list.childElementCount + AT_ONCE).map(shown));
  more.hidden = list.childElementCount >= found.length;
}

function filter() {
  found = items.filter(matches);
  list.replaceChildren();
  showMore();
  write(document.getElementById("count"), `${counted(found.length, "item")} of ${whole.format(items.length)}`);
}

/** Open the item that the address names, whatever is filtered. */
function open() {
  const item = byId.get(location.hash.slice(1));
  if (!item) return;
  if (!document.getElementById(item.id)) list.prepend(shown(item));
  const element = document.getElementById(item.id);
  element.open = true;
  element.scrollIntoView();
}

write(document.getElementById("title"), title);
const contested = items.filter((item) => item.status === "contested").length;
const facts = `${counted(items.length, "item")}, ${whole.format(contested)} of them contested`;
write(document.getElementById("facts"), facts);
document.title = title;
document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
search.addEventListener("input", filter);
which.addEventListener("change", filter);
more.addEventListener("click", showMore);
window.addEventListener("hashchange", open);
filter();
open();
