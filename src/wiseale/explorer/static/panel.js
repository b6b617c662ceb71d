// One run's map: points, small pictures and the overlay, redrawn once per frame where something changed.

import { element, svg, themeColours } from "./elements.js";
import { makeOverlay } from "./overlay.js";
import { webglPoints } from "./points_webgl.js";
import { canvasPoints } from "./points_canvas.js";
import { pixelView, toPixel } from "./view.js";
import { project } from "./plane.js";
import { has, rowsOf } from "./selection.js";
import { css } from "./colours.js";

const MOST_ELLIPSES = 150;
const SLOW_FRAME = 33; // milliseconds

export function makePanel(app, run) {
  const forced = new URLSearchParams(location.search).get("renderer") === "canvas";
  let pointCanvas = element("canvas");
  let points = forced ? null : webglPoints(pointCanvas);
  if (!points) points = canvasPoints((pointCanvas = element("canvas"))); // a canvas keeps the first kind of context it had
  const pictureCanvas = element("canvas", { hidden: true });
  const under = svg("svg", { "aria-hidden": "true" });
  const root = svg("svg", { "aria-hidden": "true" });
  const thinned = element("span", { className: "thinned", hidden: true });
  const stage = element("div", { className: "stage", tabIndex: 0 }, under, pointCanvas, pictureCanvas, root, thinned);
  stage.setAttribute("role", "application");
  stage.setAttribute("aria-label", `map of run ${run.letter}: arrow keys move the code, Enter pins it`);
  const caption = element("figcaption", {}, ...captionOf(app, run));
  const figure = element("figure", { className: "panel" }, caption, stage);

  figure.dataset.renderer = points.kind;
  const overlay = makeOverlay(under, root);
  const stale = new Set(["positions", "colours", "lines", "posteriors", "points", "marks"]);
  let scheduled = false;
  let [step, last, slow, moves] = [1, 0, 0, false];
  let resting;

  const size = () => [stage.clientWidth || 1, stage.clientHeight || 1];
  const view = () => pixelView(app.store.state.view, ...size());

  function invalidate(...parts) {
    parts.forEach((part) => stale.add(part));
    if (!scheduled) {
      scheduled = true;
      requestAnimationFrame(draw);
    }
  }

  function draw() {
    scheduled = false;
    if (moves) keepPace();
    const theme = themeColours();
    const now = view();
    const state = app.store.state;
    if (stale.has("positions")) points.setPositions(run.positions);
    if (stale.has("colours")) points.setColours(pointColours(app, run));
    if (stale.has("points") || stale.has("positions") || stale.has("colours")) {
      drawPoints(now);
      drawPictures(now, theme);
      overlay.place(now);
      overlay.axes(now, run.plane, theme);
      stale.add("marks");
    }
    if (stale.has("lines")) overlay.contours(run.plane, run.contours, app.manifest.radii, state.layers, theme);
    if (stale.has("posteriors") || (stale.has("points") && state.layers.posteriors)) {
      overlay.posteriors(run.plane, posteriorEntries(now, theme));
    }
    note(state);
    if (stale.has("marks")) overlay.marks((u) => toPixel(now, u), app.marksOf(run), theme);
    stale.clear();
  }

  function drawPoints(now) {
    const ratio = Math.min(devicePixelRatio || 1, 2);
    fit(pointCanvas, now, ratio);
    const radius = run.n > 20000 ? 1.6 : run.n > 4000 ? 2.1 : run.n > 800 ? 3 : 4;
    points.draw(now, radius, ratio, step, moves);
  }

  function drawPictures(now, theme) {
    pictureCanvas.hidden = !app.store.state.layers.pictures || !app.thumbnails; // an empty layer costs time as well
    if (pictureCanvas.hidden) return;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    fit(pictureCanvas, now, ratio);
    const context = pictureCanvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, now.width, now.height);
    const { rows, side, paint } = app.thumbnails;
    const taken = new Map(); // one picture at most in a cell of its own size, so only neighbouring cells can overlap
    const room = side + 5;
    rows.forEach((row, number) => {
      const [x, y] = toPixel(now, [run.positions[2 * row], run.positions[2 * row + 1]]);
      if (x < 0 || y < 0 || x > now.width || y > now.height) return;
      const [column, line] = [Math.floor(x / room), Math.floor(y / room)];
      for (let k = 0; k < 9; k++) {
        const other = taken.get(1000 * (line + Math.floor(k / 3) - 1) + column + (k % 3) - 1);
        if (other && Math.abs(other[0] - x) < room && Math.abs(other[1] - y) < room) return;
      }
      taken.set(1000 * line + column, [x, y]);
      paint(context, number, x - side / 2, y - side / 2, css(run.colouring.of(row)), theme);
    });
  }

  // After two slow frames in a row (fewer than 30 a second) only every 2nd row is drawn until the map stands still;
  // every 4th, 8th, … where the frames were slower.
  function keepPace() {
    const now = performance.now();
    const gap = last ? now - last : 0;
    slow = gap > SLOW_FRAME ? slow + 1 : 0;
    last = now;
    if (slow > 1 && run.n / step > 2000) {
      [step, slow] = [Math.min(step * 2 ** Math.max(1, Math.round(Math.log2(gap / SLOW_FRAME))), 32), 0];
    }
    note(app.store.state);
  }

  // While the user pans and frames are slow, every 2nd, 4th, … row is drawn, and the panel says so.
  function moving() {
    moves = true;
    note(app.store.state);
    clearTimeout(resting);
    resting = setTimeout(() => {
      [moves, last, step] = [false, 0, 1];
      invalidate("points");
    }, 500);
  }

  // What is left out of the picture is said in its corner.
  function note({ layers }) {
    const { drawn, of } = run.drawnEllipses || { drawn: 0, of: 0 };
    const some = layers.posteriors && drawn < of ? `posteriors of ${drawn} of ${of.toLocaleString("en")} rows in view` : "";
    thinned.textContent = step > 1 ? `every ${step === 2 ? "2nd" : `${step}th`} row is drawn while moving` : some;
    thinned.hidden = !thinned.textContent;
  }

  function posteriorEntries(now, theme) {
    const { state } = app.store;
    const found = [];
    if (run.sigma) {
      const entry = (row, strong) => ({ row, strong, colour: strong ? theme.ink : css(run.colouring.of(row)), ...run.posterior(row) });
      if (state.layers.posteriors) found.push(...inView(now).map((row) => entry(row, false)));
      else if (state.selection.count && state.selection.count <= MOST_ELLIPSES) {
        found.push(...rowsOf(state.selection).map((row) => entry(row, false)));
      }
      if (state.hoverRow >= 0) found.push(entry(state.hoverRow, true));
    }
    for (const own of state.own) {
      const { mu, sigma } = own.runs[run.number];
      if (sigma) found.push({ mu, sigma, row: 0, strong: true, colour: theme.accent });
    }
    return found;
  }

  // Up to MOST_ELLIPSES rows of the selection, or of all rows in view, spread evenly.
  function inView(now) {
    const chosen = app.store.state.selection;
    const rows = [];
    for (let row = 0; row < run.n; row++) {
      if (chosen.count && !has(chosen, row)) continue;
      const [x, y] = toPixel(now, [run.positions[2 * row], run.positions[2 * row + 1]]);
      if (x > 0 && y > 0 && x < now.width && y < now.height) rows.push(row);
    }
    const every = Math.max(1, rows.length / MOST_ELLIPSES);
    run.drawnEllipses = { drawn: Math.min(rows.length, MOST_ELLIPSES), of: rows.length };
    return Array.from({ length: run.drawnEllipses.drawn }, (_, k) => rows[Math.floor(k * every)]);
  }

  new ResizeObserver(() => invalidate("points", "posteriors")).observe(stage);
  return { run, figure, stage, under, root, pointCanvas, pictureCanvas, view, invalidate, moving, drawNow: () => { stale.add("points"); draw(); } };
}

function captionOf(app, run) {
  const words = [run.objective.split(":")[0], `${run.latent_dim} latent dimensions`.replace(/^1 latent dimensions/, "1 latent dimension")];
  if (!run.stochastic) words.push("deterministic encoder");
  if (run.trained_on) words.push(`trained on ${run.trained_on.toLocaleString("en")} of these rows`);
  const letter = element("span", { className: "letter" }, run.letter);
  letter.dataset.run = run.number;
  const parts = [element("span", { className: "name" }, run.name), element("span", { className: "what", title: `${run.objective} · ${run.network}` }, words.join(" · "))];
  return app.runs.length > 1 ? [letter, ...parts] : parts;
}

// RGBA of every point: opaque if it is selected or if nothing is selected, else faint.
function pointColours(app, run) {
  const { selection, layers } = app.store.state;
  const bytes = new Uint8Array(4 * run.n);
  for (let row = 0; row < run.n; row++) {
    const rgb = run.colouring.of(row);
    const alpha = selection.count && !has(selection, row) ? 22 : layers.pictures ? 90 : 205;
    bytes.set([rgb[0], rgb[1], rgb[2], alpha], 4 * row);
  }
  return bytes;
}

function fit(canvas, view, ratio) {
  const [width, height] = [Math.round(view.width * ratio), Math.round(view.height * ratio)];
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
}

