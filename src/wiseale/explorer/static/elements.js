// Functions that create HTML and SVG elements, and that show messages.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// The theme's colours, as the style sheet gives them at this moment.
export function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ink", "soft", "line", "faint", "card", "accent", "prior", "aggregate", "well"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

export function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
}

let clearing;

// Shows a message on the page for seven seconds; an empty text removes it.
export function tell(text) {
  byId("message").textContent = text;
  clearTimeout(clearing);
  if (text) clearing = setTimeout(() => (byId("message").textContent = ""), 7000);
}

let reading;

// Has screen readers read the newest text, once no other has come for a third of a second.
export function readOut(text) {
  clearTimeout(reading);
  reading = setTimeout(() => (byId("live").textContent = text), 350);
}
