// The figures: a table with one column a run, and how many tasks are solved for so many calls, tokens or dollars.

const SIZE = { width: 560, height: 240, left: 44, right: 14, top: 12, bottom: 34 };
const AXES = {
  model_calls: "model calls a task",
  total_tokens: "tokens a task",
  cost: "dollars a task",
  seconds: "seconds a task",
};

function table() {
  const names = runs.map((run, place) => `${numbered(place)} ${run}`);
  const header = several ? el("thead", {}, line("th", ["", ...names])) : null;
  return el("table", {}, header, el("tbody", {}, ...figures.map(([name, ...values]) => line("td", [name, ...values]))));
}

function line(kind, [name, ...values]) {
  return el("tr", {}, el("th", { scope: "row" }, name), ...values.map((value) => el(kind, { dir: "auto" }, value)));
}

/** Share solved (upwards) by tasks that took at most so much (to the right), with its 95 % interval as a band. */
function curve(amount) {
  const drawn = curves[amount];
  const most = Math.max(...drawn.flatMap((points) => points.map((point) => point[0]))) || 1;
  const x = (value) => SIZE.left + (value / most) * (SIZE.width - SIZE.left - SIZE.right);
  const y = (share) => SIZE.height - SIZE.bottom - share * (SIZE.height - SIZE.top - SIZE.bottom);
  const label = drawn.map((points, place) => inWords(points, runs[place], amount)).join(" ");
  return draw(
    "svg",
    { viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, role: "img", "aria-label": label, class: "curve" },
    ...[0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
      draw("path", { class: "grid", d: `M${SIZE.left} ${y(share)}H${SIZE.width - SIZE.right}` }),
      draw("text", { x: SIZE.left - 6, y: y(share) + 4, "text-anchor": "end" }, `${share * 100}%`),
    ]),
    ...[0, 0.5, 1].map((part) =>
      draw(
        "text",
        { x: x(part * most), y: SIZE.height - SIZE.bottom + 16, "text-anchor": part === 1 ? "end" : "middle" },
        brief(part * most),
      ),
    ),
    draw("text", { x: SIZE.width / 2, y: SIZE.height - 3, "text-anchor": "middle" }, AXES[amount]),
    ...drawn.map((points, place) => draw("path", { class: `band run${place % 6}`, d: band(points, x, y, most) })),
    ...drawn.map((points, place) => draw("path", { class: `step run${place % 6}`, d: steps(points, x, y, most) })),
  );
}

function brief(value) {
  return value >= 100 || Number.isInteger(value) ? whole.format(Math.round(value)) : value.toPrecision(2);
}

function steps(points, x, y, most, at = 1) {
  const parts = points.map((point) => `H${x(point[0])}V${y(point[at])}`);
  return `M${x(0)} ${y(0)}${parts.join("")}H${x(most)}`;
}

function band(points, x, y, most) {
  if (!points.length) return "";
  const low = points.toReversed().map((point) => `V${y(point[2])}H${x(point[0])}`);
  const high = points.map((point) => `H${x(point[0])}V${y(point[3])}`);
  return `M${x(points[0][0])} ${y(points[0][3])}${high.join("")}H${x(most)}${low.join("")}Z`;
}

function inWords(points, name, amount) {
  const last = points.at(-1);
  if (!last) return `${name}: nothing solved.`;
  const half = points.find((point) => point[1] >= last[1] / 2);
  const [first, all] = [half, last].map(([spent, share]) => [`${(100 * share).toFixed(1)}%`, brief(spent)]);
  return `${name}: ${first[0]} solved within ${first[1]} ${AXES[amount]}, ${all[0]} within ${all[1]}.`;
}

function charts() {
  const amounts = Object.keys(curves);
  if (!amounts.length) return [];
  const place = el("div", {});
  const pick = el("select", {}, ...amounts.map((name) => el("option", { value: name }, AXES[name])));
  const show = () => place.replaceChildren(curve(pick.value));
  pick.addEventListener("change", show);
  show();
  const names = runs.map((name, at) => el("li", { dir: "auto" }, swatch(at), `${numbered(at)} ${name}`));
  return [
    el("p", { class: "above" }, el("label", {}, "Solved against ", pick), " with 95 % intervals"),
    place,
    ...(several ? [el("ul", { class: "legend" }, ...names)] : []),
  ];
}

function swatch(place) {
  return draw(
    "svg",
    { viewBox: "0 0 24 8", class: "sample", "aria-hidden": "true" },
    draw("path", { class: `step run${place % 6}`, d: "M0 4H24" }),
  );
}

document.title = title;
document.getElementById("title").textContent = title;
document.getElementById("facts").textContent = facts;
document.getElementById("table").append(table());
document.getElementById("charts").append(...charts());
document
  .getElementById("settings")
  .append(...settings.flatMap(([name, value]) => [el("dt", {}, name), el("dd", { dir: "auto" }, value)]));
document.getElementById("figures").open = innerWidth > 700;
refresh();
const linked = decodeURIComponent(location.hash.replace(/^#task=/, ""));
const first = tasks.find((task) => task.id === linked) ?? shownTasks[0];
if (first) choose(first, Boolean(linked && first.id === linked));
