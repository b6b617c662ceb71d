// Inside a notebook's frame: tells the notebook which rows are selected, and selects the rows it names.
// Rows are counted from 0, as in Python.

import { rowsOf, selectionOf } from "./selection.js";

const MOST_ROWS = 20000;

export function watchFrame(app) {
  if (window.parent === window) return;
  const { store, manifest } = app;
  let last = "";
  const number = (row) => app.rowIndex(row);
  store.watch(["selection"], ({ selection }) => {
    const rows = rowsOf(selection, MOST_ROWS).map(number);
    if (rows.join() === last) return;
    last = rows.join();
    window.parent.postMessage({ wisealeSelected: rows }, "*");
  });
  window.addEventListener("message", ({ source, data }) => {
    if (source !== window.parent || !Array.isArray(data?.wisealeSelect)) return;
    const wanted = new Set(data.wisealeSelect);
    const rows = Array.from({ length: manifest.n }, (_, row) => row).filter((row) => wanted.has(number(row)));
    last = data.wisealeSelect.join();
    store.set({ selection: selectionOf(manifest.n, rows), picked: [] });
  });
}
