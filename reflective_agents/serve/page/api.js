// Asks the server, with the key of whoever looks at the page. It is kept as long as the window is open.

const key = {
  get: () => sessionStorage.getItem("reflect-key") ?? "",
  set: (value) => sessionStorage.setItem("reflect-key", value),
};

/** What went wrong, in the server's words. */
class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function ask(path, body, signal) {
  const headers = key.get() ? { authorization: `Bearer ${key.get()}` } : {};
  const sent = body && { method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(`/live/${path}`, { headers, signal, ...sent });
  if (answer.ok) return answer;
  const refusal = await answer.json().catch(() => ({}));
  throw new Refused(refusal.error?.message ?? `the server answers ${answer.status}`, answer.status);
}

async function get(path) {
  return (await ask(path)).json();
}

async function post(path, body) {
  return (await ask(path, body)).json();
}

/** Call `take` with every event of the last run of a thread, from its first one on, until it has ended. */
async function follow(thread, signal, take) {
  const reader = (await ask(`threads/${thread}/events`, undefined, signal)).body
    .pipeThrough(new TextDecoderStream())
    .getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) if (part.startsWith("data: ")) take(JSON.parse(part.slice(6)));
  }
}
