// A decoder for pages without the network: decoded codes are stored, on a grid (d_z ≤ 2) or of some rows (d_z > 2).

export function makeStoredDecoder(description, buffer) {
  const { kind, size, low, high, float } = description;
  const codes = new Float32Array(buffer, 0, description.codes);
  const stored = float ? new Float32Array(buffer, 4 * description.codes) : new Uint8Array(buffer, 4 * description.codes);
  const value = float ? (v) => v : (v) => low + (v / 255) * (high - low);
  return kind === "grid" ? gridDecoder(description, stored, size, value) : nearestDecoder(description, codes, stored, size, value);
}

// Bilinear between the four codes of the grid around z.
function gridDecoder({ from, to, points, dims }, stored, size, value) {
  return (z) => {
    const x = new Float32Array(size);
    const cells = Array.from({ length: 2 }, (_, axis) => {
      if (axis >= dims) return { low: 0, part: 0, high: 0 };
      const at = Math.max(0, Math.min(points - 1, ((z[axis] - from[axis]) / (to[axis] - from[axis])) * (points - 1)));
      const low = Math.min(Math.floor(at), points - 2);
      return { low, part: at - low, high: low + 1 };
    });
    for (const [j, wy] of [[cells[1].low, 1 - cells[1].part], [cells[1].high, cells[1].part]]) {
      for (const [i, wx] of [[cells[0].low, 1 - cells[0].part], [cells[0].high, cells[0].part]]) {
        const weight = wx * wy;
        if (weight === 0) continue;
        const start = (j * points + i) * size;
        for (let k = 0; k < size; k++) x[k] += weight * value(stored[start + k]);
      }
    }
    return x;
  };
}

function nearestDecoder({ dims }, codes, stored, size, value) {
  const n = codes.length / dims;
  return (z) => {
    let [best, least] = [0, Infinity];
    for (let row = 0; row < n; row++) {
      let distance = 0;
      for (let k = 0; k < dims; k++) distance += (codes[row * dims + k] - z[k]) ** 2;
      if (distance < least) [best, least] = [row, distance];
    }
    return Float32Array.from(stored.subarray(best * size, (best + 1) * size), value);
  };
}
