// The day as the page was given it, and what can be looked up in it.

let picture, names, steps, memories, knows;
/** Retrievals of each memory, by its id, and reflections that rest on each. */
let retrieved, derived;

/** Take a day in, as far as it has come. */
function take(day) {
  picture = day;
  names = picture.agents.map((agent) => agent.name);
  steps = [...new Map(picture.day.map((moment) => [moment.step, moment.time])).entries()];
  memories = new Map(picture.agents.flatMap((agent) => agent.memories.map((one) => [one.id, one])));
  knows = new Map(picture.spread.map((one) => [one.agent, one]));
  retrieved = new Map();
  derived = new Map();
  for (const retrieval of picture.retrievals) {
    for (const found of retrieval.found) entry(retrieved, found.id).push({ ...retrieval, ...found });
  }
  for (const one of memories.values()) for (const below of one.evidence) entry(derived, below).push(one);
}

function entry(map, key) {
  if (!map.has(key)) map.set(key, []);
  return map.get(key);
}

/** How an agent came by a memory, in words. */
const HOW = {
  before: "knew before",
  told: "inner voice",
  plan: "plan",
  own: "did",
  seen: "saw",
  said: "said",
  heard: "heard",
  reflection: "reflection",
};

/** The time of a memory on the clock of the town. */
function timeOf(memory) {
  const minutes = Math.floor(memory.created / 60);
  return [minutes / 60, minutes % 60].map((part) => String(Math.floor(part)).padStart(2, "0")).join(":");
}

/** What an agent does, moment after moment; one that goes on for several steps is one span. */
function spansOf(name) {
  const spans = [];
  for (const moment of picture.day.filter((one) => one.agent === name)) {
    const last = spans.at(-1);
    const same = last && last.place === moment.place && last.doing === moment.doing;
    if (same) {
      last.steps.push(moment.step);
      if (moment.talk) last.talks.push(moment.talk);
    } else {
      spans.push({ ...moment, steps: [moment.step], talks: moment.talk ? [moment.talk] : [] });
    }
  }
  return spans;
}

/** The step in which an agent came to know of the news; undefined if it never did. */
function learned(name) {
  const known = knows.get(name);
  return known?.knows ? Math.max(memories.get(known.memory)?.step ?? 1, 1) : undefined;
}

/** The time after so many minutes. */
function after(time, minutes) {
  const [hour, minute] = time.split(":").map(Number);
  const total = hour * 60 + minute + minutes;
  return `${String(Math.floor(total / 60)).padStart(2, "0")}:${String(total % 60).padStart(2, "0")}`;
}
