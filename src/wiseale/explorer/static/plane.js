// The plane of the map: two latent units, or the principal components of a run's codes. u = A z, rows of A orthonormal.

export function planeOf(run, axes) {
  const d = run.latent_dim;
  if (d === 1) {
    return { line: true, directions: [[1], [0]], labels: ["z1", "spread at random, for legibility"] };
  }
  if (axes === "pca" && run.principal) {
    const share = run.principal.shares.map((s) => `${Math.round(100 * s)} %`);
    return {
      line: false,
      directions: run.principal.directions,
      labels: [`PC 1 (${share[0]} of variance)`, `PC 2 (${share[1]})`],
    };
  }
  const [i, j] = axes.split(",").map(Number).map((unit) => Math.min(unit, d - 1));
  const unit = (k) => Array.from({ length: d }, (_, column) => (column === k ? 1 : 0));
  return { line: false, directions: [unit(i), unit(j)], labels: [`z${i + 1}`, `z${j + 1}`], units: [i, j] };
}

const dot = (a, b) => {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
};

// A fixed pseudo-random height between −1 and 1, for codes of one dimension.
const height = (row) => ((row * 2654435761) % 4294967296) / 2147483648 - 1;

export function project(plane, z, row = 0) {
  return [dot(plane.directions[0], z), plane.line ? height(row) : dot(plane.directions[1], z)];
}

export function projectAll(plane, mu, n, d) {
  const positions = new Float32Array(2 * n);
  for (let row = 0; row < n; row++) {
    const [x, y] = project(plane, mu.subarray(row * d, row * d + d), row);
    positions[2 * row] = x;
    positions[2 * row + 1] = y;
  }
  return positions;
}

// The code at u whose other coordinates are those of the base code: base + Aᵀ (u − A base).
export function lift(plane, u, base) {
  const z = Float32Array.from(base);
  const steps = plane.line ? [u[0] - base[0], 0] : plane.directions.map((a, axis) => u[axis] - dot(a, base));
  for (let k = 0; k < z.length; k++) {
    z[k] += steps[0] * plane.directions[0][k] + steps[1] * plane.directions[1][k];
  }
  return z;
}

// The 1σ ellipse in the plane of a posterior with these sigmas: half axes, and the angle of the first in degrees.
export function ellipseOf(plane, sigma) {
  if (plane.line) return { rx: sigma[0], ry: 0.04, angle: 0 };
  const [a, b] = plane.directions;
  let [xx, xy, yy] = [0, 0, 0];
  for (let k = 0; k < sigma.length; k++) {
    const s2 = sigma[k] * sigma[k];
    xx += a[k] * a[k] * s2;
    xy += a[k] * b[k] * s2;
    yy += b[k] * b[k] * s2;
  }
  const middle = (xx + yy) / 2;
  const reach = Math.hypot((xx - yy) / 2, xy);
  return {
    rx: Math.sqrt(middle + reach),
    ry: Math.sqrt(Math.max(middle - reach, 0)),
    angle: (Math.atan2(2 * xy, xx - yy) * 90) / Math.PI,
  };
}
