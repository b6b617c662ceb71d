// The key to the colours and lines. A class is a button that selects its rows.

import { byId, element, svg, themeColours } from "./elements.js";
import { css, OTHER } from "./colours.js";
import { day, short } from "./numbers.js";
import { selectionOf } from "./selection.js";

const MOST_LISTED = 40;

export function watchLegend(app) {
  const { store } = app;

  function draw({ layers }) {
    const { colouring, choice } = app.colour;
    const parts = [];
    if (colouring.kind === "classes") parts.push(element("span", {}, choice.name), ...classButtons(choice, colouring));
    if (colouring.kind === "scale") parts.push(...scaleKey(choice, colouring));
    if (colouring.missing) parts.push(element("span", { className: "key" }, swatchOf(OTHER), "missing"));
    const theme = themeColours();
    const lines = [];
    const flat = app.runs.every((run) => run.latent_dim === 1);
    if (layers.aggregate && !flat) lines.push(line(theme.aggregate, "", "aggregate posterior"));
    if (layers.prior) lines.push(line(theme.prior, "4 3", flat ? "prior, ±1, 2, 3 σ" : app.runs.some((run) => run.own_prior) ? "prior (the model's own)" : "prior"));
    if (lines.length && !flat) {
      const shares = app.manifest.shares.map((share) => Math.round(100 * share)).join(", ");
      lines.push(element("span", {}, `lines enclose ${shares} %`));
    }
    byId("legend").replaceChildren(...parts, element("span", { className: "lines" }, ...lines));
  }

  function classButtons(choice, colouring) {
    const buttons = choice.classes.slice(0, MOST_LISTED).map((name, kind) => {
      const button = element("button", { type: "button", onclick: () => toggle(kind) }, swatchOf(colouring.colour[kind]), name);
      button.setAttribute("aria-pressed", `${store.state.picked.includes(kind)}`);
      button.title = `select the rows of class ${name}`;
      return button;
    });
    const left = choice.classes.length - buttons.length;
    return left > 0 ? [...buttons, element("span", {}, `and ${left} more`)] : buttons;
  }

  function toggle(kind) {
    const picked = store.state.picked.includes(kind) ? store.state.picked.filter((one) => one !== kind) : [...store.state.picked, kind];
    const { values } = app.colour;
    const rows = [];
    for (let row = 0; row < app.manifest.n; row++) if (picked.includes(values[row])) rows.push(row);
    store.set({ picked, selection: selectionOf(app.manifest.n, rows) });
  }

  function scaleKey(choice, colouring) {
    const canvas = element("canvas", { width: 120, height: 10 });
    const context = canvas.getContext("2d");
    colouring.scale.forEach((rgb, k) => {
      context.fillStyle = css(rgb);
      context.fillRect((k * 120) / colouring.scale.length, 0, 120 / colouring.scale.length + 1, 10);
    });
    const text = choice.dates ? day : short;
    return [element("span", {}, choice.name), element("span", {}, text(colouring.low)), canvas, element("span", {}, `${text(colouring.high)}${colouring.byRank ? " (by rank)" : ""}`)];
  }

  store.watch(["colour", "layers", "picked", "theme"], draw);
}

function swatchOf(rgb) {
  const swatch = element("span", { className: "swatch" });
  swatch.style.background = css(rgb);
  return swatch;
}

function line(colour, dash, text) {
  const drawn = svg("svg", { width: 22, height: 10, "aria-hidden": "true" }, svg("line", { x1: 0, x2: 22, y1: 5, y2: 5, stroke: colour, "stroke-width": 2, "stroke-dasharray": dash }));
  return element("span", {}, drawn, text);
}
