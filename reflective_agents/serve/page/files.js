// Text files that come with a question: chosen or dropped, read here, and sent as texts that the answer can cite.

const MOST_CHARACTERS = 5_000_000;

let attached = [];

/** Take files, unless one is no text or they are too large together. */
async function attach(files) {
  say("");
  for (const file of files) {
    try {
      const size = attached.reduce((sum, { text }) => sum + text.length, file.size);
      if (size > MOST_CHARACTERS) throw new Refused(`${file.name}: more than 5 MB of files`);
      attached.push({ name: file.name.slice(0, 200), text: await textOf(file) });
    } catch (error) {
      complain(error);
    }
  }
  showFiles();
}

async function textOf(file) {
  let text = "\0";
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
  if (text.includes("\0")) throw new Refused(`${file.name} is no text in UTF-8: save it as text first`);
  if (!text.trim()) throw new Refused(`${file.name} is empty`);
  return text;
}

/** A file as a message of a thread is shown. */
function asMessage({ name, text }) {
  return { type: "human", file: name, size: text.length, text: text.slice(0, 4000) };
}

function showFiles() {
  const items = attached.map((file) => {
    const remove = el("button", { type: "button", "aria-label": `Remove ${file.name}` }, "✕");
    remove.addEventListener("click", () => {
      attached = attached.filter((other) => other !== file);
      showFiles();
      document.getElementById("attach").focus();
    });
    return el("li", {}, el("span", { dir: "auto" }, file.name), remove);
  });
  document.getElementById("files").replaceChildren(...items);
}

function watchFiles() {
  const chosen = document.getElementById("chosen");
  document.getElementById("attach").addEventListener("click", () => chosen.click());
  chosen.addEventListener("change", async () => {
    await attach([...chosen.files]);
    chosen.value = "";
  });
  // A file that misses the page would replace it.
  const holdsFiles = ({ dataTransfer }) => dataTransfer.types.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (holdsFiles(event)) event.preventDefault();
  });
  document.addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    attach([...event.dataTransfer.files]);
  });
}
