// Numbers as people read them.

export function short(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 100) return `${value}`.replace("-", "−");
  const size = Math.abs(value);
  const text =
    size >= 1e6 || size < 1e-4
      ? value.toExponential(digits - 1)
      : value.toFixed(Math.max(0, Math.min(6, digits - 1 - Math.floor(Math.log10(size)))));
  return text.replace("-", "−");
}

// A date of a colour scale, which counts days since 1970.
export const day = (value) => new Date(Math.round(value * 86400) * 1000).toISOString().slice(0, 10);

export const fixed = (value, digits = 2) => value.toFixed(digits).replace("-", "−");

export const grouped = (value) => value.toLocaleString("en");

export const counted = (n, noun) => `${grouped(n)} ${noun}${n === 1 ? "" : "s"}`;

export function codeText(z, most = 4) {
  const shown = Array.from(z.slice(0, most), (value) => fixed(value)).join(", ");
  return `(${shown}${z.length > most ? ", …" : ""})`;
}

// Round tick positions for an interval, at least about `gap` apart.
export function ticks(low, high, gap) {
  const power = 10 ** Math.floor(Math.log10(gap));
  const step = [1, 2, 5, 10].map((m) => m * power).find((candidate) => candidate >= gap);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(k * step);
  return { values: found, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}
