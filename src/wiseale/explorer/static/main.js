// Starts the page.

import { byId, tell } from "./elements.js";
import { makeStore } from "./store.js";
import { httpSource } from "./source.js";
import { embeddedSource } from "./embedded.js";
import { readAddress, writeAddress } from "./address.js";
import { makeApp } from "./app.js";
import { makePanel } from "./panel.js";
import { listen } from "./gestures.js";
import { watchInspector } from "./inspector.js";
import { watchPins } from "./pins.js";
import { watchDetails } from "./details.js";
import { watchLegend } from "./legend.js";
import { watchFrame } from "./frame.js";
import { watchOwnRows } from "./own_rows.js";
import { watchToolbar } from "./toolbar.js";
import { counted, grouped } from "./numbers.js";

const REDRAW = {
  points: ["view"],
  positions: ["axes"],
  colours: ["colour", "selection", "layers", "theme"],
  lines: ["contours", "layers", "theme", "axes"],
  posteriors: ["hoverRow", "selection", "layers", "own", "axes", "theme", "colour"],
  marks: ["cursor", "hoverRow", "pins", "pathAt", "own", "lasso", "drawn", "axes", "theme"],
};

async function start() {
  const embedded = byId("embedded");
  const source = embedded ? await embeddedSource(embedded) : await httpSource();
  const app = await makeApp(source, makeStore, readAddress);
  const { store, manifest, runs } = app;
  describe(manifest);

  app.panels = runs.map((run) => makePanel(app, run));
  byId("maps").dataset.count = runs.length;
  watchToolbar(app);
  watchInspector(app);
  watchPins(app);
  watchDetails(app);
  watchLegend(app);
  watchOwnRows(app);
  watchFrame(app);
  for (const [part, keys] of Object.entries(REDRAW)) {
    store.watch(keys, () => app.panels.forEach((panel) => panel.invalidate(part)));
  }
  store.watch(["theme"], ({ colour }) => app.setColour(colour));
  store.watch(["layers"], async ({ layers }) => {
    if (!layers.pictures || app.thumbnails) return;
    tell("loading the pictures…");
    await app.showPictures();
    tell("");
    app.panels.forEach((panel) => panel.invalidate("points"));
  });

  document.documentElement.dataset.theme = store.state.theme;
  const contours = app.setAxes(store.state.axes);
  await app.setColour(store.state.colour);
  byId("maps").replaceChildren(...app.panels.map((panel) => panel.figure));
  app.panels.forEach((panel) => {
    listen(app, panel);
    panel.drawNow();
  });
  performance.mark("first-map");
  store.set({ ...store.state });
  if (!store.state.cursor) app.goTo(runs[0], runs[0].latent_dim === 2 ? new Float32Array(2) : runs[0].posterior(0).mu);
  await contours;

  let writing;
  store.watch(["axes", "colour", "view", "layers", "tab", "base", "cursor", "pins", "selection", "theme"], () => {
    clearTimeout(writing);
    writing = setTimeout(() => writeAddress(store.state), 250);
  });
  document.documentElement.dataset.ready = "true";
}

function describe({ data, split, n, available, runs }) {
  const rows = n === available ? counted(n, split === "all rows" ? "row" : `${split} row`) : `${grouped(n)} of ${grouped(available)} ${split === "all rows" ? "" : split} rows shown`;
  byId("about").textContent = `${data} · ${rows.replace("  ", " ")}`;
  byId("title").textContent = runs.length > 1 ? `${runs.length} runs` : runs[0].name;
  document.title = `${runs.map((run) => run.name).join(", ")} · wiseale explorer`;
}

start().catch((error) => {
  byId("about").textContent = `The page could not start: ${error.message}`;
  throw error;
});
