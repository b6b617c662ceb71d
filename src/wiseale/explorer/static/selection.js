// A selection of rows: one bit for each, shared by all runs.

export const emptySelection = (n) => ({ bits: new Uint32Array(Math.ceil(n / 32)), count: 0, n });

export const has = (selection, row) => (selection.bits[row >> 5] & (1 << (row & 31))) !== 0;

export function selectionOf(n, rows) {
  const selection = emptySelection(n);
  for (const row of rows) {
    if (row >= 0 && row < n && !has(selection, row)) {
      selection.bits[row >> 5] |= 1 << (row & 31);
      selection.count++;
    }
  }
  return selection;
}

export function rowsOf(selection, most = Infinity) {
  const rows = [];
  for (let row = 0; row < selection.n && rows.length < most; row++) {
    if (has(selection, row)) rows.push(row);
  }
  return rows;
}
