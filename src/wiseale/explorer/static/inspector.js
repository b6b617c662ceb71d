// The right column: what the code under the cursor decodes to, and the hovered row beside its reconstructions.

import { byId, element, readOut, tell } from "./elements.js";
import { besides, paint, shown } from "./picture.js";
import { rowText } from "./cells.js";
import { codeText, fixed, short } from "./numbers.js";
import { latestWins } from "./store.js";

export function watchInspector(app) {
  const { store, source, manifest } = app;
  const { observation } = manifest;
  const size = observation.shape.reduce((a, b) => a * b, 1);
  byId("decode-note").textContent = source.decodeNote;

  // One request at a time for each run: the code under the cursor and the hovered row's code travel together.
  const refresh = latestWins(async (cursor, row) => {
    try {
      const answers = await Promise.all(app.runs.map((run) => {
        const codes = [...(run.number === cursor.run ? [cursor.z] : []), ...(row >= 0 ? [run.posterior(row).mu] : [])];
        return codes.length ? app.decode(run.number, codes) : [];
      }));
      const original = row >= 0 ? await app.original(row) : null;
      showCursor(cursor, answers[cursor.run].subarray(0, size));
      if (row >= 0) showRow(row, original, answers.map((x, number) => (number === cursor.run ? x.subarray(size) : x)));
    } catch (error) {
      tell(error.message);
    }
  });

  function showCursor(cursor, x) {
    const run = app.runs[cursor.run];
    const place = byId("cursor-x");
    const description = describe(observation, x, `decoded at ${codeText(cursor.z)}`);
    const canvas = place.querySelector("canvas.x");
    if (canvas && observation.kind !== "table") paint(canvas, observation, x, description);
    else {
      const scrolled = place.querySelector(".values")?.scrollTop || 0;
      place.replaceChildren(...shown(observation, x, observation.kind === "table" ? "decoded" : description));
      const fresh = place.querySelector("canvas.x");
      if (fresh && observation.kind !== "table") paint(fresh, observation, x, description);
      if (place.querySelector(".values")) place.querySelector(".values").scrollTop = scrolled;
    }
    place.dataset.code = Array.from(cursor.z, (value) => value.toFixed(3)).join(" ");
    byId("cursor-title").textContent = app.runs.length > 1 ? `Decoded at the cursor by ${run.letter}` : "Decoded at the cursor";
    if (app.keyboard) readOut(`${byId("readout").textContent} ${description}`);
  }

  function showRow(row, original, decoded) {
    const letter = (run) => (app.runs.length > 1 ? run.letter : "reconstruction");
    const entries = app.runs.map((run, number) => ({ title: letter(run), x: decoded[number], run: number }));
    byId("row-x").replaceChildren(...besides(observation, original, entries));
    for (const canvas of byId("row-x").querySelectorAll("canvas.x.drawn")) {
      paint(canvas, observation, [...(original ? [original] : []), ...decoded], "original and reconstruction",
        [...(original ? [getComputedStyle(document.documentElement).getPropertyValue("--soft")] : []), ...app.runs.map((run) => run.colour)]);
    }
    byId("row-title").textContent = `Row ${app.rowNumber(row)}`;
    const errors = app.runs.map((run) => `${app.runs.length > 1 ? `${run.letter}: ` : ""}${short(run.error[row])}`).join(", ");
    const note = original ? "" : " The original of this row is not kept here.";
    byId("row-facts").textContent = `${app.factsOf(row)}${app.factsOf(row) ? " · " : ""}squared error ${errors}.${note}`;
  }

  function update({ cursor, hoverRow }) {
    if (!cursor) return;
    const run = app.runs[cursor.run];
    const near = cursor.near >= 0 ? ` · nearest row ${app.rowNumber(cursor.near)}${app.labelOf(cursor.near)}` : "";
    byId("readout").textContent = `z = ${codeText(cursor.z, 10)}${near}`;
    if (run.latent_dim > 2) showSliders(run, cursor);
    refresh(cursor, hoverRow);
  }

  // d_z > 2: the coordinates outside the plane come from the nearest row, or stay as the sliders say.
  function showSliders(run, cursor) {
    const place = byId("others");
    if (place.dataset.built !== `${run.latent_dim}`) {
      place.dataset.built = `${run.latent_dim}`;
      const choice = element("select", { onchange: (event) => app.setBase(event.target.value) },
        element("option", { value: "nearest" }, "of the nearest row"), element("option", { value: "held" }, "held, set below"));
      const sliders = element("div", { className: "sliders" });
      for (let k = 0; k < run.latent_dim; k++) {
        const input = element("input", { type: "range", min: -4, max: 4, step: 0.05, oninput: (event) => app.setCoordinate(k, Number(event.target.value)) });
        sliders.append(element("label", {}, `z${k + 1}`, input, element("output")));
      }
      place.replaceChildren(element("label", { className: "choice" }, "other coordinates", choice), sliders);
    }
    place.querySelector("select").value = app.store.state.base;
    place.querySelectorAll(".sliders label").forEach((label, k) => {
      const input = label.querySelector("input");
      if (document.activeElement !== input) input.value = cursor.z[k];
      label.querySelector("output").textContent = fixed(cursor.z[k]);
    });
  }

  store.watch(["cursor", "hoverRow", "theme"], update);
  byId("pin").addEventListener("click", () => app.pin());
}

function describe(observation, x, text) {
  if (observation.kind === "table") return rowText(observation.columns, x);
  let sum = 0;
  for (const value of x) sum += value;
  return `${text}, mean value ${short(sum / x.length)}`;
}
