// Draws an observation: an image pixel by pixel, a signal as lines, a table row as a line for each column.

import { element, themeColours } from "./elements.js";
import { RUN_COLOURS } from "./colours.js";
import { paintCell } from "./cells.js";
import { valuesTable } from "./values_table.js";

// A canvas with the observation; several signals or rows may share one, each with its colour.
export function picture(observation, values, description, colours = null) {
  const canvas = element("canvas", { className: "x" });
  canvas.setAttribute("role", "img");
  paint(canvas, observation, values, description, colours);
  return canvas;
}

export function paint(canvas, observation, values, description, colours = null) {
  const all = Array.isArray(values) ? values : [values];
  canvas.setAttribute("aria-label", description);
  canvas.classList.toggle("image", observation.kind === "image");
  canvas.classList.toggle("drawn", observation.kind !== "image");
  if (observation.kind === "image") paintImage(canvas, observation, all[0]);
  else if (observation.kind === "signal") paintSignals(canvas, observation, all, colours);
  else paintRow(canvas, observation, all);
}

function paintImage(canvas, { shape, low, high }, x) {
  const [channels, height, width] = shape;
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const area = width * height;
  const scale = 255 / (high[0] - low[0]);
  for (let k = 0; k < area; k++) {
    for (let c = 0; c < 3; c++) {
      const channel = channels >= 3 ? c : channels === 2 ? Math.min(c, 1) : 0;
      image.data[4 * k + c] = (x[channel * area + k] - low[0]) * scale;
    }
    image.data[4 * k + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

// Channels one above the other, at most six; the range is the data's, or wider if a line leaves it.
function paintSignals(canvas, { shape, low, high }, all, colours) {
  const [channels, length] = [Math.min(shape[0], 6), shape[1]];
  const { context, width, height, theme } = surface(canvas, 286, 150);
  let [least, most] = [low[0], high[0]];
  for (const x of all) for (const value of x) [least, most] = [Math.min(least, value), Math.max(most, value)];
  all.forEach((x, number) => {
    context.strokeStyle = colours?.[number] || theme.ink;
    context.lineWidth = 1.6;
    for (let c = 0; c < channels; c++) {
      const band = height / channels;
      context.beginPath();
      for (let t = 0; t < length; t++) {
        const px = 3 + (t / Math.max(1, length - 1)) * (width - 6);
        const py = c * band + 4 + (1 - (x[c * length + t] - least) / (most - least)) * (band - 8);
        if (t) context.lineTo(px, py);
        else context.moveTo(px, py);
      }
      context.stroke();
    }
  });
}

// One line for each column, at most 24.
function paintRow(canvas, observation, all) {
  const columns = Math.min(observation.columns.length, 24);
  const { context, width, height, theme } = surface(canvas, 74, 44);
  const band = height / columns;
  const place = { left: 3, width: width - 6, height: Math.max(1.5, Math.min(6, 0.7 * band)), line: theme.line, mark: theme.accent };
  for (let c = 0; c < columns; c++) paintCell(context, observation, c, all[0], { ...place, top: (c + 0.5) * band - place.height / 2 });
}

function surface(canvas, width, height) {
  const shown = canvas.isConnected && canvas.clientWidth ? [canvas.clientWidth, canvas.clientHeight] : [width, height];
  const ratio = Math.min(globalThis.devicePixelRatio || 1, 2);
  [canvas.width, canvas.height] = shown.map((side) => Math.round(side * ratio));
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.lineJoin = "round";
  return { context, width: shown[0], height: shown[1], theme: themeColours() };
}

// One observation for the inspector: a canvas with its caption, or for a table row its values.
export function shown(observation, x, caption) {
  if (observation.kind === "table") return valuesTable(observation, [{ title: caption, x }]);
  const parts = [picture(observation, x, caption)];
  return [element("figure", {}, ...parts)];
}

// An original beside reconstructions: pictures side by side, signals in one plot, table rows in one table.
export function besides(observation, original, reconstructions) {
  const entries = [...(original ? [{ title: "original", x: original }] : []), ...reconstructions];
  if (observation.kind === "table") return valuesTable(observation, entries);
  if (observation.kind === "image") {
    return entries.map(({ title, x }) => element("figure", {}, picture(observation, x, title), element("figcaption", {}, title)));
  }
  const colours = entries.map((entry, number) => (entry.title === "original" ? themeColours().soft : RUN_COLOURS[entry.run ?? number]));
  const plot = picture(observation, entries.map(({ x }) => x), entries.map(({ title }) => title).join(", "), colours);
  const key = element("figcaption", {}, "grey: original; coloured: reconstruction");
  return [element("figure", {}, plot, key)];
}
