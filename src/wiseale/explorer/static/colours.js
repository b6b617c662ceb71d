// Colours of points: classes in ten colours that stay distinct with colour-vision deficiency (Petroff 2021), others on
// a scale that the server sends (viridis; twilight where values wrap around).

export const CLASS_COLOURS = [
  [63, 144, 218], [255, 169, 14], [189, 31, 1], [148, 164, 162], [131, 45, 182],
  [169, 107, 89], [231, 99, 0], [185, 172, 112], [113, 117, 129], [146, 218, 221],
];
export const OTHER = [150, 150, 150];
const PLAIN = [63, 144, 218];

export const RUN_COLOURS = ["#3f90da", "#e76300", "#832db6", "#3c9d6a"];
export const css = (rgb) => `rgb(${rgb[0]}, ${rgb[1]}, ${rgb[2]})`;

// The ways to colour, in the order of the menu: key, name, and the group it is listed under.
export function colourChoices(manifest) {
  const found = manifest.colourings.map((colouring, number) => ({ key: `${number}`, ...colouring }));
  const error = { key: "error", name: "reconstruction error", source: "model", classes: [], period: null };
  return [...found, error, { key: "none", name: "one colour", source: "model", classes: [], period: null }];
}

// A colouring for the values of the rows: rgb of a row, and what the legend needs.
export function makeColouring(choice, values, scales, dark) {
  if (choice.key === "none") return { kind: "plain", of: () => PLAIN };
  const missing = values.some(Number.isNaN);
  if (choice.classes.length) {
    const colour = classColours(choice.classes.length, values);
    return { kind: "classes", of: (row) => colour[values[row]] ?? OTHER, colour, missing };
  }
  const scale = choice.period ? cyclic(scales.twilight, dark) : dark ? scales.viridis.slice(16) : scales.viridis.slice(0, 58);
  const [low, high, middle] = choice.period ? [0, choice.period, 0] : range(values);
  const lopsided = !choice.period && Math.abs((middle - low) / (high - low || 1) - 0.5) > 0.3;
  if (lopsided) return rankColouring(values, scale);
  const at = (value) => {
    const share = choice.period ? ((value % high) + high) % high / high : (value - low) / (high - low || 1);
    return scale[Math.max(0, Math.min(scale.length - 1, Math.round(share * (scale.length - 1))))];
  };
  return { kind: "scale", of: (row) => at(values[row]) ?? OTHER, low, high, scale, missing };
}

// Colours that would vanish before the page's background are avoided: viridis is cut at one end, and a cyclic scale,
// which has no end to cut, is darkened on a light page and lightened on a dark one.
const cyclic = (scale, dark) => scale.map((rgb) => rgb.map((part) => Math.round(dark ? part + 0.3 * (255 - part) : 0.8 * part)));

function classColours(n, values) {
  if (n <= CLASS_COLOURS.length) return CLASS_COLOURS.slice(0, n);
  const count = new Uint32Array(n);
  for (const value of values) if (!Number.isNaN(value)) count[value]++;
  const ranked = [...count.keys()].sort((a, b) => count[b] - count[a]);
  const colour = Array(n).fill(OTHER);
  ranked.slice(0, 9).sort((a, b) => a - b).forEach((kind, place) => (colour[kind] = CLASS_COLOURS[place < 3 ? place : place + 1]));
  return colour;
}

// From the 2nd to the 98th percentile, so that a few extreme rows do not use up the scale.
function range(values) {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort();
  if (!sorted.length) return [0, 1, 0.5];
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const ends = at(0.98) > at(0.02) ? [at(0.02), at(0.98)] : [sorted[0], sorted[sorted.length - 1]];
  return [...ends, at(0.5)];
}

// Where most values crowd at one end, equal steps of colour are equal numbers of rows.
function rankColouring(values, scale) {
  const order = Uint32Array.from(values.keys()).filter((row) => !Number.isNaN(values[row])).sort((a, b) => values[a] - values[b]);
  const colour = new Uint8Array(values.length).fill(255); // beyond the scale: missing
  order.forEach((row, rank) => (colour[row] = Math.floor((rank / order.length) * scale.length)));
  const [low, high] = [values[order[0]], values[order[order.length - 1]]];
  return { kind: "scale", of: (row) => scale[colour[row]] ?? OTHER, low, high, scale, byRank: true, missing: order.length < values.length };
}
