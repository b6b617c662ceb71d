// What the page can do, over the runs and the state: move the code, select rows, change axes and colours.

import { isDark, readOut, tell } from "./elements.js";
import { lift, planeOf, project, projectAll } from "./plane.js";
import { inside, makeIndex } from "./nearest.js";
import { colourChoices, css, makeColouring, RUN_COLOURS } from "./colours.js";
import { emptySelection, has, rowsOf, selectionOf } from "./selection.js";
import { fittingView } from "./view.js";
import { counted, day, short } from "./numbers.js";
import { splitGeometry } from "./source.js";
import { pathOf } from "./pins.js";
import { loadThumbnails } from "./thumbnails.js";

const PLAIN = makeColouring({ key: "none" });
const REACH = 9; // pixels between the cursor and a row that it points at

export async function makeApp(source, makeStore, readAddress) {
  const { manifest } = source;
  const { n } = manifest;
  const runs = await Promise.all(manifest.runs.map(async (described, number) => {
    const parts = splitGeometry(await source.geometry(number), described, n);
    const d = described.latent_dim;
    const of = (values, row) => values && values.subarray(row * d, (row + 1) * d);
    const posterior = (row) => ({ mu: of(parts.mu, row), sigma: of(parts.sigma, row) });
    return { ...described, ...parts, number, n, posterior, letter: "ABCD"[number], colour: RUN_COLOURS[number], contours: null, colouring: PLAIN };
  }));
  const choices = colourChoices(manifest);
  const axes = runs.every((run) => run.latent_dim === 2) ? "0,1" : Math.min(...runs.map((run) => run.latent_dim)) > 1 ? "pca" : "0,0";
  const defaults = {
    axes, colour: choices[0].key, view: null, tab: "traversal", theme: "auto", tool: "move", base: "nearest",
    layers: { posteriors: false, aggregate: true, prior: true, pictures: false },
    cursor: null, hoverRow: -1, pins: [], pathAt: 0, selection: emptySelection(n), picked: [], own: [], lasso: null,
    samplePage: 0, drawn: [], drawnRun: 0,
  };
  const store = makeStore(readAddress(defaults, manifest, choices));
  const app = { source, manifest, runs, choices, store, panels: [], keyboard: false, thumbnails: null, colour: { choice: choices.at(-1), colouring: PLAIN, values: null } };
  const values = new Map();

  // ----- data

  app.decode = (run, codes) => {
    const d = runs[run].latent_dim;
    const flat = new Float32Array(codes.length * d);
    codes.forEach((z, k) => flat.set(z, k * d));
    return source.decode(run, flat);
  };
  const originals = new Map();
  app.original = async (row) => {
    if (!originals.has(row)) {
      if (originals.size > 200) originals.clear();
      originals.set(row, await source.original(row));
    }
    return originals.get(row);
  };
  const colouringValues = async (number) => {
    if (!values.has(number)) values.set(number, await source.colouring(number));
    return values.get(number);
  };
  app.loadColourings = () => Promise.all(manifest.colourings.slice(0, 12).map((_, number) => colouringValues(number)));
  app.valueText = (number, row) => {
    const known = values.get(number);
    if (!known) return "";
    const { classes, dates } = manifest.colourings[number];
    if (Number.isNaN(known[row])) return "missing";
    if (classes.length) return classes[known[row]];
    return dates ? day(known[row]) : short(known[row], 4);
  };
  app.rowIndex = (row) => (manifest.numbers ? manifest.numbers[row] : row); // as programs count rows, from 0
  app.rowNumber = (row) => app.rowIndex(row) + 1; // as people and the report count them
  app.labelOf = (row) => {
    const first = manifest.colourings.findIndex(({ classes }) => classes.length);
    return first >= 0 && values.has(first) ? ` (${manifest.colourings[first].name} ${app.valueText(first, row)})` : "";
  };
  app.factsOf = (row) => manifest.colourings.map((colouring, number) => [colouring, app.valueText(number, row)])
    .filter(([{ source: from }, text]) => text && from !== "column").map(([{ name }, text]) => `${name} ${text}`).join(" · ");

  // ----- the plane and its colours

  app.setAxes = async (chosen) => {
    for (const run of runs) {
      run.plane = planeOf(run, chosen);
      run.positions = projectAll(run.plane, run.mu, n, run.latent_dim);
      run.index = makeIndex(run.positions);
      run.contours = null;
    }
    const changed = chosen !== store.state.axes || !store.state.view;
    store.set({ axes: chosen, ...(changed ? { view: fittingView(runs) } : {}) });
    if (store.state.cursor) app.goTo(runs[store.state.cursor.run], store.state.cursor.z);
    let told = false;
    const late = setTimeout(() => {
      told = true;
      tell("computing contours…");
    }, 400);
    try {
      await Promise.all(runs.map(async (run) => {
        const contours = run.latent_dim > 1 ? await source.contours(run.number, chosen) : null;
        if (store.state.axes === chosen) run.contours = contours;
      }));
    } catch (error) {
      clearTimeout(late);
      return tell(error.message);
    }
    clearTimeout(late);
    if (told) tell("");
    if (runs.some((run) => run.latent_dim > 1 && !run.contours)) tell("this file holds no contours for these axes");
    return store.set({ contours: chosen });
  };
  app.setColour = async (key) => {
    const choice = choices.find((one) => one.key === key);
    try {
      const shared = /^\d+$/.test(key) ? await colouringValues(Number(key)) : null;
      for (const run of runs) run.colouring = makeColouring(choice, key === "error" ? run.error : shared, manifest.scales, isDark());
      app.colour = { choice, values: shared, colouring: runs[0].colouring };
      store.set({ colour: key, ...(key === store.state.colour ? {} : { picked: [] }) });
    } catch (error) {
      tell(error.message);
    }
  };
  app.look = (view) => {
    store.set({ view });
    app.panels.forEach((panel) => panel.moving());
  };
  app.showAll = () => store.set({ view: fittingView(runs) });
  app.showPictures = async () => {
    app.thumbnails ??= await loadThumbnails(source, manifest);
  };

  // ----- the code

  app.pointAt = (run, u, keyboard = false) => {
    app.keyboard = keyboard;
    const { base, cursor } = store.state;
    const near = run.index.nearest(...u);
    const held = cursor?.run === run.number ? cursor.z : new Float32Array(run.latent_dim);
    const z = lift(run.plane, u, base === "nearest" ? run.posterior(near.row).mu : held);
    const scale = app.panels[run.number].view().scale;
    store.set({ cursor: { run: run.number, z, near: near.row, u }, hoverRow: near.distance * scale < REACH ? near.row : -1 });
  };
  app.goTo = (run, z, keyboard = app.keyboard) => {
    app.keyboard = keyboard;
    const u = project(run.plane, z);
    store.set({ cursor: { run: run.number, z: Float32Array.from(z), near: run.index.nearest(...u).row, u }, hoverRow: -1 });
  };
  app.goToRow = (row, run = runs[store.state.cursor?.run ?? 0]) => {
    const { mu } = run.posterior(row);
    store.set({ cursor: { run: run.number, z: Float32Array.from(mu), near: row, u: project(run.plane, mu, row) }, hoverRow: row });
    readOut(`row ${app.rowNumber(row)}${app.labelOf(row)}`);
  };
  app.cursorIn = (run) => (store.state.cursor?.run === run.number ? store.state.cursor.u : [store.state.view.x, store.state.view.y]);
  app.goToNearestRow = (run) => app.goToRow(run.index.nearest(...app.cursorIn(run)).row, run);
  app.setBase = (base) => store.set({ base });
  app.setCoordinate = (unit, value) => {
    const { cursor } = store.state;
    const z = Float32Array.from(cursor.z);
    z[unit] = value;
    store.set({ base: "held" });
    app.goTo(runs[cursor.run], z, true);
  };
  app.codeOfPin = (pin, run) => (pin.row >= 0 ? run.posterior(pin.row).mu : pin.run === run.number ? pin.z : null);

  // ----- the selection

  app.clearSelection = () => store.set({ selection: emptySelection(n), picked: [], lasso: null });
  app.toggleRow = () => {
    const row = store.state.hoverRow >= 0 ? store.state.hoverRow : store.state.cursor?.near ?? -1;
    if (row < 0) return;
    const { selection } = store.state;
    const rows = rowsOf(selection).filter((one) => one !== row);
    const removed = has(selection, row);
    store.set({ selection: selectionOf(n, removed ? rows : [...rows, row]), picked: [] });
    readOut(`row ${app.rowNumber(row)} ${removed ? "deselected" : "selected"}`);
  };
  app.finishLasso = (run, points) => {
    store.set({ lasso: null });
    if (points.length < 3) return;
    const rows = [];
    for (let row = 0; row < n; row++) if (inside(points, run.positions[2 * row], run.positions[2 * row + 1])) rows.push(row);
    store.set({ selection: selectionOf(n, rows), picked: [], tab: rows.length ? "selection" : store.state.tab });
    readOut(`${counted(rows.length, "row")} selected`);
  };

  // ----- what a panel marks above its points

  app.marksOf = (run) => {
    const { pins, cursor, hoverRow, own, lasso, drawn, drawnRun, pathAt } = store.state;
    const at = (row) => [run.positions[2 * row], run.positions[2 * row + 1]];
    const path = pins.length > 1 ? pathOf(app) : null;
    const along = (k) => project(run.plane, path.codes[k]);
    return {
      pins: pins.map((pin, k) => ({ z: app.codeOfPin(pin, run), label: `${k + 1}` })).filter(({ z }) => z)
        .map(({ z, label }) => ({ u: project(run.plane, z), label })),
      path: path?.run === run ? { from: along(0), to: along(path.codes.length - 1), now: along(pathAt) } : null,
      own: own.map((row) => project(run.plane, row.runs[run.number].mu)),
      hover: hoverRow >= 0 ? { u: at(hoverRow), colour: css(run.colouring.of(hoverRow)) } : null,
      cursor: cursor?.run === run.number ? { u: cursor.u, run: run.number, own: runs.length === 1 } : null,
      lasso: lasso?.run === run.number ? lasso.points : null,
      drawn: drawnRun === run.number ? drawn.map((z) => project(run.plane, z)) : [],
    };
  };
  return app;
}
