// The bar below: a slider over the frames, a player, and the best value found so far as a line.

const LINES = ["area", "line", "event reflected", "event solved"];

class History {
  /** `changed` is called with the frame that is to be shown. */
  constructor(footer, changed) {
    this.slider = footer.querySelector("#slider");
    this.status = footer.querySelector("#status");
    this.button = footer.querySelector("[data-does=play]");
    this.changed = changed;
    this.timer = null;
    this.chart = footer.querySelector("#chart");
    this.chart.append(...LINES.map((name) => draw("path", { class: name })));
    this.grow();
    this.slider.addEventListener("input", () => {
      this.stop();
      this.go(this.slider.valueAsNumber);
    });
  }

  /** Take in how long the history is. */
  grow() {
    this.frame ??= lastFrame;
    this.slider.max = lastFrame;
    chart(this.chart);
  }

  /** Show a frame; one outside of the history is the nearest in it. */
  go(frame) {
    this.frame = Math.min(Math.max(frame, 0), lastFrame);
    this.slider.value = this.frame;
    const text = describe(this.frame);
    set(this.slider, "aria-valuetext", text);
    write(this.status, text);
    this.changed(this.frame);
  }

  /** Go so many steps on; what plays, stops. */
  step(by) {
    this.stop();
    this.go(this.frame + by);
  }

  /** Play from here, or from the beginning if this is the end; or stop. */
  play() {
    if (this.timer) {
      this.stop();
      return;
    }
    if (this.frame === lastFrame) this.go(0);
    const pause = Math.min(Math.max(20_000 / (lastFrame + 1), 60), 900);
    this.timer = setInterval(() => (this.frame < lastFrame ? this.go(this.frame + 1) : this.stop()), pause);
    this.#shows(true);
  }

  /** Stop playing. */
  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.#shows(false);
  }

  #shows(playing) {
    this.button.setAttribute("aria-pressed", playing);
    this.button.setAttribute("aria-label", playing ? "Pause" : "Play");
    this.button.textContent = playing ? "⏸" : "▶";
  }
}

/** A frame in words. */
function describe(place) {
  const frame = picture.frames[place];
  const facts = [
    frame.added.length ? `${whole.format(frame.added.length)} added` : "",
    frame.merged ? `${whole.format(frame.merged)} merged` : "",
    frame.pruned.length ? `${whole.format(frame.pruned.length)} pruned` : "",
    frame.reflection ? "a reflection" : "",
    frame.calls ? counted(frame.calls, "call") : "",
    frame.tokens ? counted(frame.tokens, "token") : "",
  ].filter(Boolean);
  const far = spent[place];
  const sum = place && far.calls ? `; ${counted(far.calls, "call")}, ${counted(far.tokens, "token")} so far` : "";
  const details = facts.length ? `: ${facts.join(", ")}` : "";
  return `Step ${place + 1} of ${lastFrame + 1}, ${frame.event} ${frame.node ?? ""}${details}${sum}`;
}

function chart(svg) {
  svg.setAttribute("viewBox", `0 -0.08 ${lastFrame} 1.16`);
  const known = bestSoFar.map((best, place) => [place, 1 - Math.min(Math.max(best ?? 0, 0), 1)]);
  const line = known.map(([x, y], place) => (place ? `H${x}V${y}` : `M${x} ${y}`)).join("");
  const events = { solved: "", reflected: "" };
  picture.frames.forEach((frame, place) => {
    const kind = frame.added.some((id) => nodes.get(id).solved) ? "solved" : "reflected";
    if (kind === "solved" || frame.reflection) events[kind] += `M${place} 0V1`;
  });
  [`${line}V1H0Z`, line, events.reflected, events.solved].forEach((d, place) => set(svg.children[place], "d", d));
  const ends = [bestSoFar[0], bestSoFar[lastFrame]].map((worth) => number(worth));
  const label = `Best value so far: ${ends[0]} at first, ${ends[1]} in the end`;
  set(svg, "aria-label", lastFrame ? label : "Nothing has changed yet");
}
