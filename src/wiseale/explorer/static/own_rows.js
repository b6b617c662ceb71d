// Rows of the user's own: dropped on the page or opened, encoded by every run, shown on the maps and reconstructed.

import { byId, element, readOut, tell } from "./elements.js";
import { besides, paint } from "./picture.js";
import { short } from "./numbers.js";

const MOST_BYTES = 32 * 1024 * 1024;

export function watchOwnRows(app) {
  const { store, source, manifest } = app;
  byId("open-row").hidden = !source.acceptsRows;
  byId("open-row").addEventListener("click", () => byId("row-file").click());
  byId("row-file").addEventListener("change", (event) => open(event.target.files[0]));

  async function open(file) {
    if (!file) return;
    if (file.size > MOST_BYTES) return tell(`${file.name} has ${Math.round(file.size / 1e6)} MB: at most 32 MB can be opened`);
    tell(`encoding ${file.name}…`);
    const suffix = file.name.toLowerCase().split(".").pop().replace(/[^a-z0-9]/g, "") || "none";
    try {
      const content = await file.arrayBuffer();
      const answers = await Promise.all(app.runs.map((run) => source.ownRows(run.number, content, suffix)));
      add(file.name, answers);
    } catch (error) {
      tell(error.message);
    }
  }

  function add(name, answers) {
    const [first] = answers;
    const rows = first.x.map((x, k) => ({
      name: first.x.length > 1 ? `${name}, row ${k + 1}` : name,
      x: Float32Array.from(x, (value) => value ?? NaN), // JSON has no NaN
      runs: answers.map((answer) => ({
        mu: Float32Array.from(answer.mu[k]),
        sigma: answer.sigma && Float32Array.from(answer.sigma[k]),
        x_hat: Float32Array.from(answer.x_hat[k]),
        error: answer.error[k],
      })),
    }));
    const left = first.available > rows.length ? `the first ${rows.length} of ${first.available} rows of ${name}` : name;
    store.set({ own: rows });
    tell(`${left}: on the map as ${rows.length > 1 ? "diamonds" : "a diamond"}`);
    readOut(`${name} encoded, squared error ${short(rows[0].runs[0].error)}`);
    app.goTo(app.runs[0], rows[0].runs[0].mu);
  }

  store.watch(["own", "theme"], ({ own }) => {
    byId("own-view").hidden = own.length === 0;
    byId("own-rows").replaceChildren(...own.slice(0, 8).map((row) => {
      const several = app.runs.length > 1;
      const entries = row.runs.map((answer, number) => ({ title: several ? app.runs[number].letter : "reconstruction", x: answer.x_hat, run: number }));
      const errors = row.runs.map((answer, number) => `${several ? `${app.runs[number].letter}: ` : ""}${short(answer.error)}`).join(", ");
      const go = element("button", { type: "button", onclick: () => app.goTo(app.runs[0], row.runs[0].mu) }, "go");
      go.setAttribute("aria-label", `go to ${row.name}`);
      return element("div", {}, element("p", { className: "readout" }, `${row.name} · squared error ${errors} `, go),
        element("div", { className: "shown" }, ...besides(manifest.observation, row.x, entries)));
    }));
    byId("own-rows").querySelectorAll("canvas.x.drawn").forEach((canvas, k) => {
      const row = own[k];
      const soft = getComputedStyle(document.documentElement).getPropertyValue("--soft");
      paint(canvas, manifest.observation, [row.x, ...row.runs.map(({ x_hat }) => x_hat)], `${row.name} and its reconstruction`, [soft, ...app.runs.map((run) => run.colour)]);
    });
    if (own.length) {
      const remove = element("button", { type: "button", onclick: () => store.set({ own: [] }) }, "Remove");
      byId("own-rows").append(remove);
    }
  });

  let depth = 0;
  const hint = (visible) => (byId("drop-hint").hidden = !visible);
  document.addEventListener("dragenter", () => hint(++depth > 0));
  document.addEventListener("dragleave", () => hint(--depth > 0));
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    hint((depth = 0));
    if (!source.acceptsRows) return tell("this file holds no encoder: open the run with `wiseale explore` to encode rows of your own");
    return open(event.dataTransfer.files[0]);
  });
}
