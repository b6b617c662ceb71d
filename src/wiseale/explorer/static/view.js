// Which part of the plane a panel shows: {x, y} in its middle, and span, the units across its shorter side.

export function pixelView(view, width, height) {
  const scale = Math.min(width, height) / view.span;
  return { x: view.x, y: view.y, scale, width, height, left: width / 2 - view.x * scale, top: height / 2 + view.y * scale };
}

export const toPixel = (view, u) => [view.left + u[0] * view.scale, view.top - u[1] * view.scale];
export const toPlane = (view, x, y) => [(x - view.left) / view.scale, (view.top - y) / view.scale];

export function zoomed(view, factor, around = [view.x, view.y]) {
  const span = Math.max(1e-3, Math.min(1e5, view.span * factor));
  const ratio = span / view.span;
  return { span, x: around[0] + (view.x - around[0]) * ratio, y: around[1] + (view.y - around[1]) * ratio };
}

export const moved = (view, dx, dy) => ({ ...view, x: view.x + dx, y: view.y + dy });

// All codes but the most extreme 0.5 % of each run, and the prior's circle of radius 3 if codes come near it.
export function fittingView(runs) {
  const reach = [Infinity, -Infinity, Infinity, -Infinity];
  for (const run of runs) {
    for (const axis of [0, 1]) {
      const values = Float32Array.from({ length: run.positions.length / 2 }, (_, i) => run.positions[2 * i + axis]).sort();
      const at = (share) => values[Math.round(share * (values.length - 1))];
      reach[2 * axis] = Math.min(reach[2 * axis], at(0.0025));
      reach[2 * axis + 1] = Math.max(reach[2 * axis + 1], at(0.9975));
    }
  }
  const [left, right, bottom, top] = [Math.min(reach[0], -3.1), Math.max(reach[1], 3.1), Math.min(reach[2], -3.1), Math.max(reach[3], 3.1)];
  return { x: (left + right) / 2, y: (bottom + top) / 2, span: 1.2 * Math.max(right - left, top - bottom) };
}
