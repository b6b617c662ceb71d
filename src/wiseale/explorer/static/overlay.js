// What lies above the points, in SVG: axes, contours, posteriors, pins, the path and the cursor. All looks are attributes,
// not classes, so that a saved SVG needs no style sheet.

import { svg } from "./elements.js";
import { fixed, ticks } from "./numbers.js";
import { ellipseOf, project } from "./plane.js";
import { RUN_COLOURS } from "./colours.js";

const FIXED_STROKE = { "vector-effect": "non-scaling-stroke", fill: "none" };
const FONT = { "font-family": "system-ui, sans-serif", "font-size": 11 };

export function makeOverlay(under, root) {
  const axes = svg("g");
  const world = svg("g");
  const [lines, posteriors] = [svg("g"), svg("g")];
  const marks = svg("g");
  world.append(lines, posteriors);
  under.append(axes); // the grid lies below the points
  root.append(world, marks);

  return {
    place(view) {
      world.setAttribute("transform", `translate(${view.left} ${view.top}) scale(${view.scale} ${-view.scale})`);
    },
    axes: (view, plane, theme) => axes.replaceChildren(...axisMarks(view, plane, theme)),
    contours: (...given) => lines.replaceChildren(...contourPaths(...given)),
    posteriors: (...given) => posteriors.replaceChildren(...posteriorEllipses(...given)),
    marks: (...given) => marks.replaceChildren(...codeMarks(...given)),
  };
}

function axisMarks(view, plane, theme) {
  const made = [];
  const { width, height, scale } = view;
  const x = ticks((0 - view.left) / scale, (width - view.left) / scale, 80 / scale);
  const y = ticks((view.top - height) / scale, view.top / scale, 60 / scale);
  const label = (text, attributes) => {
    const shown = svg("text", { fill: theme.soft, ...FONT, ...attributes });
    shown.textContent = text;
    return shown;
  };
  for (const value of x.values) {
    const at = view.left + value * scale;
    made.push(svg("line", { x1: at, x2: at, y1: 0, y2: height, stroke: theme.faint, "stroke-width": value === 0 ? 2 : 1 }));
    if (at > 44 && at < width - 12) made.push(label(fixed(value, x.digits), { x: at, y: height - 20, "text-anchor": "middle" }));
  }
  for (const value of y.values) {
    if (plane.line) break;
    const at = view.top - value * scale;
    made.push(svg("line", { x1: 0, x2: width, y1: at, y2: at, stroke: theme.faint, "stroke-width": value === 0 ? 2 : 1 }));
    if (at > 30 && at < height - 34) made.push(label(fixed(value, y.digits), { x: 8, y: at + 4 }));
  }
  const name = { fill: theme.ink, "font-size": 12 };
  made.push(label(plane.labels[0], { x: width - 10, y: height - 6, "text-anchor": "end", ...name }));
  made.push(label(plane.labels[1], { x: 8, y: 17, ...name }));
  return made;
}

// Aggregate: solid, thicker where it encloses less. Prior: dashed circles (lines in one dimension), or its own contours.
function contourPaths(plane, contours, radii, layers, theme) {
  const made = [];
  const path = (flat) => {
    let text = "";
    for (let k = 0; k < flat.length; k += 2) text += `${k ? "L" : "M"}${flat[k]} ${flat[k + 1]}`;
    return text;
  };
  if (layers.prior) {
    const dashed = { ...FIXED_STROKE, stroke: theme.prior, "stroke-width": 1.3, "stroke-dasharray": "5 4" };
    if (plane.line) {
      for (const x of radii.flatMap((r) => [-r, r])) made.push(svg("line", { ...dashed, x1: x, x2: x, y1: -99, y2: 99 }));
    } else if (contours?.prior) {
      for (const share of contours.prior) made.push(svg("path", { ...dashed, d: share.map(path).join("") }));
    } else {
      for (const r of radii) made.push(svg("circle", { ...dashed, r, cx: 0, cy: 0, "data-layer": "prior" }));
    }
  }
  if (layers.aggregate && contours) {
    contours.aggregate.forEach((share, number) => {
      const opacity = [0.95, 0.8, 0.65][number] * (layers.pictures ? 0.55 : 1); // lines must not cover the small pictures
      const stroke = { stroke: theme.aggregate, "stroke-width": [2.1, 1.5, 1][number], "stroke-opacity": opacity };
      made.push(svg("path", { ...FIXED_STROKE, ...stroke, d: share.map(path).join(""), "data-layer": "aggregate" }));
    });
  }
  return made;
}

// Each entry: mu, sigma, colour, and whether it is emphasised. 1σ and 2σ.
function posteriorEllipses(plane, entries) {
  const made = [];
  for (const { mu, sigma, row, colour, strong } of entries) {
    const [x, y] = project(plane, mu, row);
    const { rx, ry, angle } = ellipseOf(plane, sigma);
    for (const times of [1, 2]) {
      const stroke = { stroke: colour, "stroke-width": strong ? 1.8 : 0.9, "stroke-opacity": strong ? 1 : times === 1 ? 0.75 : 0.4 };
      const transform = `translate(${x} ${y}) rotate(${angle})`;
      made.push(svg("ellipse", { ...FIXED_STROKE, ...stroke, rx: times * rx, ry: times * ry, transform }));
    }
  }
  return made;
}

// Pins, the path, own rows, the hovered row and the cursor, in the pixels of the panel. at: u → pixel.
function codeMarks(at, { pins, path, own, hover, cursor, lasso, drawn }, theme) {
  const made = [];
  if (path) {
    const [a, b] = [at(path.from), at(path.to)];
    made.push(svg("line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], stroke: theme.accent, "stroke-width": 2 }));
    const [x, y] = at(path.now);
    made.push(svg("circle", { cx: x, cy: y, r: 5, fill: theme.accent, stroke: theme.card, "stroke-width": 1.5 }));
  }
  for (const u of drawn) {
    const [x, y] = at(u);
    made.push(svg("path", { d: `M${x - 4} ${y}h8M${x} ${y - 4}v8`, stroke: theme.accent, "stroke-width": 1.6 }));
  }
  for (const { u, label } of pins) {
    const [x, y] = at(u);
    made.push(svg("circle", { cx: x, cy: y, r: 9, fill: theme.card, stroke: theme.accent, "stroke-width": 2, "data-mark": "pin" }));
    const text = svg("text", { x, y: y + 4, "text-anchor": "middle", fill: theme.ink, ...FONT, "font-weight": 700 });
    text.textContent = label;
    made.push(text);
  }
  for (const u of own) {
    const [x, y] = at(u);
    const d = `M${x} ${y - 8}L${x + 8} ${y}L${x} ${y + 8}L${x - 8} ${y}Z`;
    made.push(svg("path", { d, fill: theme.accent, stroke: theme.card, "stroke-width": 1.5, "data-mark": "own" }));
  }
  if (hover) {
    const [x, y] = at(hover.u);
    made.push(svg("circle", { cx: x, cy: y, r: 6, fill: hover.colour, stroke: theme.ink, "stroke-width": 2, "data-mark": "hover" }));
  }
  if (cursor) {
    const [x, y] = at(cursor.u);
    const colour = cursor.own ? theme.accent : RUN_COLOURS[cursor.run];
    made.push(svg("circle", { cx: x, cy: y, r: 8, fill: "none", stroke: theme.card, "stroke-width": 4, "stroke-opacity": 0.8 }));
    made.push(svg("circle", { cx: x, cy: y, r: 8, fill: "none", stroke: colour, "stroke-width": 2, "data-mark": "cursor" }));
    made.push(svg("path", { d: `M${x - 13} ${y}h8M${x + 5} ${y}h8M${x} ${y - 13}v8M${x} ${y + 5}v8`, stroke: colour, "stroke-width": 2 }));
  }
  if (lasso?.length > 1) {
    const d = `M${lasso.map((point) => at(point).join(" ")).join("L")}Z`;
    made.push(svg("path", { d, fill: theme.accent, "fill-opacity": 0.12, stroke: theme.accent, "stroke-width": 1.5 }));
  }
  return made;
}
