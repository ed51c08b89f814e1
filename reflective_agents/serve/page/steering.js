// The buttons that take a search by the hand.

/** What each button asks for; `node` is the one that is selected in the tree. */
const ORDERS = {
  pause: () => ({}),
  resume: () => ({}),
  stop: () => ({}),
  more: () => ({ limits: { max_expansions: 5 } }),
  fork: () => ({ step: document.getElementById("step").valueAsNumber }),
  prune: (node) => ({ node }),
  rescore: (node) => ({ node, score: document.getElementById("score").valueAsNumber }),
  hint: (node) => ({ node, text: document.getElementById("hint-text").value }),
};
const AT_A_NODE = new Set(["prune", "rescore", "hint"]);

/** Say which buttons can be used: for a thread in a state, with a tree, and with a node selected in it. */
function enable(status, hasTree, node) {
  const running = status === "running" || status === "sending";
  const still = ["paused", "stopped", "ended", "error"].includes(status);
  const holds = { pause: status === "running", resume: status === "paused" || status === "error" };
  for (const button of document.querySelectorAll("[data-do]")) {
    const name = button.dataset.do;
    button.disabled = !(holds[name] ?? (still && hasTree && (!AT_A_NODE.has(name) || node !== null)));
    if (name in holds) button.hidden = !holds[name];
  }
  document.getElementById("send").hidden = running;
  document.getElementById("steerable").hidden = !running;
  write(document.getElementById("selected"), node === null ? "No node is selected" : `Node ${node}`);
}
