// Rows of a table in the user's units and words: beside each other, along a traversal, or one below the other.

import { element, themeColours } from "./elements.js";
import { cellOf, cellText, isMissing, levelColour, levelShares, paintCell } from "./cells.js";
import { codeText, short } from "./numbers.js";

const MOST_COLUMNS = 60;

// One line for each column of the data, one column for each row given; a single row also with its place in the data.
export function valuesTable(observation, rows) {
  const columns = observation.columns.slice(0, MOST_COLUMNS);
  const head = element("tr", {}, heading("column"));
  for (const { title } of rows) head.append(heading(title));
  if (rows.length === 1) head.append(element("th", { scope: "col" }, element("span", { className: "visually-hidden" }, "place in the data's range")));
  const lines = columns.map((column, c) => {
    const line = element("tr", {}, element("th", { scope: "row" }, ...breakable(column.name)));
    for (const { x } of rows) line.append(cell(column, x));
    if (rows.length === 1) line.append(element("td", { className: "bar" }, rangeBar(observation, c, rows[0].x)));
    return line;
  });
  return [table("values", head, lines), ...left(observation)];
}

// One line for each column of the data, one column for each code; a heading moves the cursor to its code.
export function stepsTable(app, run, codes, decoded, name, values) {
  const { observation } = app.manifest;
  const rows = split(decoded, codes.length);
  const middle = rows[(rows.length - 1) / 2];
  const head = element("tr", {}, heading(name), ...codes.map((z, k) => element("th", { scope: "col" }, goTo(app, run, z, short(values[k])))));
  const lines = observation.columns.slice(0, MOST_COLUMNS).map((column, c) => {
    const cells = rows.map((x) => tinted(cell(column, x), column, x, middle, observation.high[c] - observation.low[c]));
    return element("tr", {}, element("th", { scope: "row" }, column.name), ...cells);
  });
  return [table("steps", head, lines), ...left(observation)];
}

// One line for each code, one column for each column of the data.
export function rowsTable(app, run, codes, decoded) {
  const { observation } = app.manifest;
  const columns = observation.columns.slice(0, MOST_COLUMNS);
  const rows = split(decoded, codes.length);
  const lines = rows.map((x, k) => element("tr", {}, element("th", { scope: "row" }, goTo(app, run, codes[k], `${k + 1}`)), ...columns.map((column) => cell(column, x))));
  return [table("rows", element("tr", {}, heading(""), ...columns.map(({ name }) => heading(name))), lines), ...left(observation)];
}

// A name may break after an underscore.
const breakable = (name) => name.split(/(?<=_)/).flatMap((part, k) => (k ? [element("wbr"), part] : [part]));

const heading = (text) => element("th", { scope: "col" }, text);

const table = (className, head, lines) => element("table", { className }, element("thead", {}, head), element("tbody", {}, ...lines));

function cell(column, x) {
  const { text, share } = cellOf(column, x);
  const probability = share === null ? [] : [element("small", {}, ` ${Math.round(100 * share)} %`)];
  return element("td", { className: isMissing(column, x) ? "missing" : "", title: cellText(column, x) }, text, ...probability);
}

function goTo(app, run, z, text) {
  const button = element("button", { type: "button", onclick: () => app.goTo(run, z) }, text);
  button.setAttribute("aria-label", `go to ${codeText(z)}`);
  return button;
}

function left({ columns }) {
  return columns.length > MOST_COLUMNS ? [element("p", { className: "note" }, `the first ${MOST_COLUMNS} of ${columns.length} columns`)] : [];
}

function split(decoded, n) {
  const size = decoded.length / n;
  return Array.from({ length: n }, (_, k) => decoded.subarray(k * size, (k + 1) * size));
}

// A number is blue below that of the middle step and orange above; a level has its own colour, stronger the larger its probability.
function tinted(made, column, x, middle, range) {
  let [colour, strength] = ["", 0];
  if (column.levels.length) {
    const shares = levelShares(column, x);
    const most = Math.max(...shares);
    [colour, strength] = [levelColour(shares.indexOf(most)), 0.3 * most];
  } else {
    const change = (x[column.start] - middle[column.start]) / (range || 1);
    [colour, strength] = [change < 0 ? "#3f90da" : "#e76300", Math.min(0.35, Math.abs(change))];
  }
  made.style.background = `color-mix(in srgb, ${colour} ${Math.round(100 * strength)}%, transparent)`;
  return made;
}

function rangeBar(observation, number, x) {
  const canvas = element("canvas", { width: 240, height: 20 });
  const context = canvas.getContext("2d");
  const theme = themeColours();
  context.scale(2, 2);
  paintCell(context, observation, number, x, { left: 0, top: 0, width: 120, height: 10, line: theme.line, mark: theme.accent });
  return canvas;
}
