// Pinned codes, and the straight path between the last two of one run, with play.

import { byId, element, readOut, tell } from "./elements.js";
import { picture } from "./picture.js";
import { codeText } from "./numbers.js";
import { latestWins } from "./store.js";
import { strip } from "./strip.js";

const STEPS = 33;
const MOST_PINS = 9;

// The last two pins that are codes of this run, and the code at each step of the path between them.
export function pathOf(app) {
  const { pins, cursor } = app.store.state;
  const run = app.runs[cursor?.run ?? 0];
  const ends = pins.map((pin) => app.codeOfPin(pin, run)).filter(Boolean).slice(-2);
  if (ends.length < 2) return null;
  const codes = Array.from({ length: STEPS }, (_, k) => {
    const t = k / (STEPS - 1);
    return Float32Array.from(ends[0], (value, i) => value * (1 - t) + ends[1][i] * t);
  });
  return { run, codes };
}

export function watchPins(app) {
  const { store, manifest } = app;
  let timer = null;

  app.pin = () => {
    const { cursor, hoverRow, pins } = store.state;
    if (!cursor) return;
    if (pins.length >= MOST_PINS) return tell(`at most ${MOST_PINS} codes can be pinned: remove one`);
    const z = hoverRow >= 0 ? app.runs[cursor.run].posterior(hoverRow).mu : cursor.z;
    store.set({ pins: [...pins, { run: cursor.run, z: Float32Array.from(z), row: hoverRow }] });
    readOut(`pinned as ${pins.length + 1}`);
  };

  const showPins = latestWins(async () => {
    const { pins } = store.state;
    try {
      const decoded = await Promise.all(pins.map((pin) => app.decode(pin.run, [pin.z])));
      const items = pins.map((pin, number) => {
        const run = app.runs[pin.run];
        const name = `${number + 1}${app.runs.length > 1 ? ` (${run.letter})` : ""}`;
        const what = pin.row >= 0 ? `row ${app.rowNumber(pin.row)}${app.labelOf(pin.row)}` : codeText(pin.z, 3);
        const go = element("button", { type: "button", onclick: () => app.goTo(run, pin.z) }, "go");
        go.setAttribute("aria-label", `go to pin ${number + 1}`);
        const remove = element("button", { type: "button", onclick: () => store.set({ pins: pins.filter((one) => one !== pin) }) }, "✕");
        remove.setAttribute("aria-label", `remove pin ${number + 1}`);
        return element("li", {}, element("b", {}, name), picture(manifest.observation, decoded[number], `pin ${number + 1} decoded`),
          element("span", { className: "grow" }, what), go, remove);
      });
      const note = element("p", { className: "note" }, "Click on the map to pin a code; two pins make a path.");
      byId("pins").replaceChildren(pins.length ? element("ol", { className: "pin-list" }, ...items) : note);
      await showPath();
    } catch (error) {
      tell(error.message);
    }
  });

  let frames = null;

  async function showPath() {
    const path = pathOf(app);
    byId("path").hidden = !path;
    if (!path) {
      frames = null;
      return stop();
    }
    frames = { ...path, decoded: await app.decode(path.run.number, path.codes) };
    const size = frames.decoded.length / STEPS;
    const every = (STEPS - 1) / 8;
    const codes = path.codes.filter((_, k) => k % every === 0);
    const parts = new Float32Array(codes.length * size);
    codes.forEach((_, k) => parts.set(frames.decoded.subarray(k * every * size, (k * every + 1) * size), k * size));
    byId("path-strip").replaceChildren(...strip(app, path.run, codes, parts, (_, k) => `${Math.round((100 * k) / 8)} % of the path`));
    byId("path-strip").querySelectorAll("button").forEach((button, k) => button.addEventListener("click", () => store.set({ pathAt: k * every })));
    return undefined;
  }

  function follow(at) {
    byId("path-at").value = at;
    store.set({ pathAt: at });
    if (frames) app.goTo(frames.run, frames.codes[at], false);
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    byId("play").setAttribute("aria-pressed", "false");
    byId("play").textContent = "Play";
  }

  app.togglePlay = () => {
    if (timer) return stop();
    if (!frames) return tell("pin two codes of one run to make a path");
    let [at, way] = [Number(byId("path-at").value) % (STEPS - 1), 1];
    byId("play").setAttribute("aria-pressed", "true");
    byId("play").textContent = "Stop";
    timer = setInterval(() => {
      if (!frames) return stop();
      at += way;
      if (at === STEPS - 1 || at === 0) way = -way;
      return follow(at);
    }, 80);
    return undefined;
  };

  byId("play").addEventListener("click", app.togglePlay);
  byId("path-at").addEventListener("input", (event) => follow(Number(event.target.value)));
  store.watch(["pins", "theme"], showPins);
  let before = 0;
  store.watch(["cursor"], ({ cursor }) => {
    if (cursor && cursor.run !== before && app.runs.length > 1) {
      before = cursor.run;
      showPath().catch((error) => tell(error.message));
    }
  });
}
