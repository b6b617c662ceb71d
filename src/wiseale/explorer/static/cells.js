// A cell of a table as people read it. x holds a row's entries: one number for each column, one for each level of a
// category; NaN where a cell is missing.

import { CLASS_COLOURS, css } from "./colours.js";
import { fixed, short } from "./numbers.js";

const CERTAIN = 0.995; // a probability above is not written down

export const isMissing = (column, x) => Number.isNaN(x[column.start]);

// The probability of each level of a binary column or a category.
export function levelShares(column, x) {
  if (column.kind === "binary") return [1 - x[column.start], x[column.start]];
  return Array.from(x.subarray(column.start, column.start + column.width));
}

// {text, share}: the value, and of a level that is not certain its probability.
export function cellOf(column, x) {
  if (isMissing(column, x)) return { text: "missing", share: null };
  if (!column.levels.length) {
    return { text: numberText(column, x[column.start]), share: null };
  }
  const shares = levelShares(column, x);
  const likeliest = shares.indexOf(Math.max(...shares));
  return { text: column.levels[likeliest], share: shares[likeliest] < CERTAIN ? shares[likeliest] : null };
}

// Whole numbers are rounded as in the data; the rate of a count keeps a decimal while that says something.
function numberText(column, value) {
  if (!column.whole) return short(value, 4);
  const digits = column.kind === "count" && value < 100 && Math.abs(value - Math.round(value)) > 1e-6 ? 1 : 0;
  return fixed(value, digits);
}

export function cellText(column, x) {
  const { text, share } = cellOf(column, x);
  return share === null ? text : `${text} (${Math.round(100 * share)} %)`;
}

// The first columns in words, for a reader who does not see the table.
export function rowText(columns, x, most = 6) {
  const words = columns.slice(0, most).map((column) => `${column.name} ${cellText(column, x)}`).join(", ");
  return columns.length > most ? `${words}, …` : words;
}

export const levelColour = (number) => css(CLASS_COLOURS[number % CLASS_COLOURS.length]);

// A column's cell along a line from left to right: levels as a stacked bar, a number as a mark in the data's range.
export function paintCell(context, observation, number, x, { left, top, width, height, line, mark }) {
  const column = observation.columns[number];
  if (isMissing(column, x)) return;
  if (column.levels.length) {
    let at = left;
    levelShares(column, x).forEach((share, level) => {
      context.fillStyle = levelColour(level);
      context.fillRect(at, top, share * width, height);
      at += share * width;
    });
    return;
  }
  context.fillStyle = line;
  context.fillRect(left, top + height / 2 - 0.5, width, 1);
  context.fillStyle = mark;
  const [low, high] = [observation.low[number], observation.high[number]];
  const share = Math.max(0, Math.min(1, (x[column.start] - low) / (high - low || 1)));
  context.fillRect(left + share * (width - 4), top, 4, height);
}
