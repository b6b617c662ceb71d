// The state in the address after #, so that a view can be bookmarked and sent.

import { rowsOf, selectionOf } from "./selection.js";

const MOST_ROWS = 150; // rows of a selection that fit into an address
const numbers = (text) => text.split(",").map(Number);
const rounded = (values) => Array.from(values, (value) => Number(value.toFixed(3))).join(",");

export function writeAddress(state) {
  const parts = new URLSearchParams();
  parts.set("axes", state.axes);
  parts.set("colour", state.colour);
  parts.set("view", rounded([state.view.x, state.view.y, state.view.span]));
  parts.set("show", Object.keys(state.layers).filter((name) => state.layers[name]).join(","));
  parts.set("tab", state.tab);
  if (state.base !== "nearest") parts.set("others", state.base);
  if (state.cursor) parts.set("code", `${state.cursor.run}:${rounded(state.cursor.z)}`);
  for (const pin of state.pins) parts.append("pin", `${pin.run}:${pin.row}:${rounded(pin.z)}`);
  if (state.selection.count && state.selection.count <= MOST_ROWS) parts.set("rows", rowsOf(state.selection).join(","));
  if (state.theme !== "auto") parts.set("theme", state.theme);
  if (location.protocol === "about:") return; // in a notebook's frame, which has no address
  history.replaceState(null, "", `#${parts.toString().replaceAll("%2C", ",").replaceAll("%3A", ":")}`);
}

// What the address says, as far as it is valid for these runs; the rest keeps its default.
export function readAddress(defaults, manifest, choices) {
  const parts = new URLSearchParams(location.hash.slice(1));
  const found = { ...defaults };
  const dims = manifest.runs.map((run) => run.latent_dim);
  const axes = parts.get("axes");
  if (axes && (axes === "pca" ? Math.min(...dims) > 1 : validAxes(axes, Math.min(...dims)))) found.axes = axes;
  if (choices.some(({ key }) => key === parts.get("colour"))) found.colour = parts.get("colour");
  const view = numbers(parts.get("view") || "");
  if (view.length === 3 && view.every(Number.isFinite) && view[2] > 0) found.view = { x: view[0], y: view[1], span: view[2] };
  if (parts.has("show")) {
    const shown = parts.get("show").split(",");
    found.layers = Object.fromEntries(Object.keys(defaults.layers).map((name) => [name, shown.includes(name)]));
  }
  for (const key of ["tab", "theme"]) if (/^[a-z]+$/.test(parts.get(key) || "")) found[key] = parts.get(key);
  if (parts.get("others") === "held") found.base = "held";
  const code = codeOf(parts.get("code"), dims);
  if (code) found.cursor = { ...code, near: -1 };
  found.pins = parts.getAll("pin").map((text) => {
    const [run, row, z] = text.split(":");
    const pinned = codeOf(`${run}:${z}`, dims);
    return pinned && { ...pinned, row: Number(row) < manifest.n ? Number(row) : -1 };
  }).filter(Boolean);
  if (parts.has("rows")) found.selection = selectionOf(manifest.n, numbers(parts.get("rows")));
  return found;
}

const validAxes = (text, d) => /^\d+,\d+$/.test(text) && numbers(text).every((unit) => unit < d) && new Set(numbers(text)).size === 2;

function codeOf(text, dims) {
  const [run, values] = (text || "").split(":");
  const z = numbers(values || "");
  return dims[Number(run)] === z.length && z.every(Number.isFinite) ? { run: Number(run), z: Float32Array.from(z) } : null;
}
