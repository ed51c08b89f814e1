// The evaluation as the page was given it, and the transcripts, which are unpacked when they are asked for.

const { title, facts, figures, settings, runs, tasks, curves } = read("results");
const several = runs.length > 1;

function read(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

/** What base64 holds: a deflated JSON text. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

const packs = new Map();

/** The transcript of a task in a run; null where none was kept. */
async function transcript(cell) {
  if (!cell?.at) return null;
  const [pack, place] = cell.at;
  if (!packs.has(pack)) packs.set(pack, unpacked(document.getElementById(`pack-${pack}`).textContent));
  return (await packs.get(pack))[place];
}

const opened = [];

/** The address of a tree or of a day as a page of its own, made here: there is no server, and no second file. */
async function addressOf(kind, drawn) {
  const template = await unpacked(read("pages")[kind]);
  const data = JSON.stringify(drawn).replaceAll("<", "\\u003c");
  const address = URL.createObjectURL(new Blob([template[0], data, template[1]], { type: "text/html" }));
  opened.push(address);
  return address;
}

/** The number of a run, which stands where its name has no room. */
function numbered(place) {
  return `#${place + 1}`;
}

/** How a task went: what a row's sign and the filter go by. */
function verdict(cell) {
  if (!cell) return "missing";
  if (cell.error) return "crashed";
  return cell.correct === null ? "unknown" : cell.correct ? "right" : "wrong";
}

const SIGNS = { right: "✓", wrong: "✗", crashed: "!", unknown: "–", missing: "" };
const NAMES = {
  right: "right",
  wrong: "wrong",
  crashed: "crashed",
  unknown: "right answer not known",
  missing: "not run",
};
const WORST = { crashed: 0, wrong: 1, unknown: 2, missing: 3, right: 4 };

for (const [place, task] of tasks.entries()) {
  task.place = place;
  task.verdicts = task.cells.map(verdict);
  const worst = task.verdicts.map((one) => WORST[one]);
  const differs = new Set(task.verdicts).size > 1;
  task.rank = (differs ? 0 : 10) + Math.min(...worst);
  task.text = [task.id, task.question, task.gold, ...task.cells.flatMap((cell) => [cell?.answer, endOf(cell)])]
    .join("\n")
    .toLowerCase();
}

/** How a run ended, in words. */
function endOf(cell) {
  if (!cell) return "";
  return cell.error ? `crashed: ${cell.error}` : cell.status ? `${cell.status}: ${cell.reason}` : "";
}

const money = (value) => (value === null || value === undefined ? "–" : `$${value.toFixed(value < 1 ? 4 : 2)}`);
