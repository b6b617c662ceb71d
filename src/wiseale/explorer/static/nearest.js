// Nearest point in the plane, by a grid of cells with about two points each.

export function makeIndex(positions) {
  const n = positions.length / 2;
  let [left, right, bottom, top] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < n; i++) {
    left = Math.min(left, positions[2 * i]);
    right = Math.max(right, positions[2 * i]);
    bottom = Math.min(bottom, positions[2 * i + 1]);
    top = Math.max(top, positions[2 * i + 1]);
  }
  const side = Math.max(1, Math.min(512, Math.ceil(Math.sqrt(n / 2))));
  const cell = Math.max((right - left) / side, (top - bottom) / side, 1e-9);
  const columns = Math.min(side, Math.floor((right - left) / cell)) + 1;
  const lines = Math.min(side, Math.floor((top - bottom) / cell)) + 1;
  const columnOf = (x) => Math.max(0, Math.min(columns - 1, Math.floor((x - left) / cell)));
  const lineOf = (y) => Math.max(0, Math.min(lines - 1, Math.floor((y - bottom) / cell)));
  const cellOf = (i) => lineOf(positions[2 * i + 1]) * columns + columnOf(positions[2 * i]);

  const start = new Uint32Array(columns * lines + 1);
  for (let i = 0; i < n; i++) start[cellOf(i) + 1]++;
  for (let c = 0; c < columns * lines; c++) start[c + 1] += start[c];
  const filled = start.slice();
  const members = new Uint32Array(n);
  for (let i = 0; i < n; i++) members[filled[cellOf(i)]++] = i;

  function nearest(x, y) {
    const [column, line] = [columnOf(x), lineOf(y)];
    let best = -1;
    let least = Infinity;
    for (let ring = 0; ring <= Math.max(columns, lines); ring++) {
      for (let l = Math.max(0, line - ring); l <= Math.min(lines - 1, line + ring); l++) {
        const edge = Math.abs(l - line) === ring;
        for (let c = column - ring; c <= column + ring; c += edge || ring === 0 ? 1 : 2 * ring) {
          if (c < 0 || c >= columns) continue;
          for (let k = start[l * columns + c]; k < start[l * columns + c + 1]; k++) {
            const i = members[k];
            const distance = (positions[2 * i] - x) ** 2 + (positions[2 * i + 1] - y) ** 2;
            if (distance < least) [least, best] = [distance, i];
          }
        }
      }
      // Points of the next ring are at least ring · cell away.
      if (best >= 0 && least <= (ring * cell) ** 2) break;
    }
    return { row: best, distance: Math.sqrt(least) };
  }

  return { nearest, bounds: { left, right, bottom, top } };
}

// Whether a point lies inside a polygon [[x, y], …], by the even-odd rule.
export function inside(polygon, x, y) {
  let within = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [xi, yi] = polygon[i];
    const [xj, yj] = polygon[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) within = !within;
  }
  return within;
}
