// The controls above the map.

import { byId, element } from "./elements.js";
import { savePng, saveSvg } from "./save.js";
import { zoomed } from "./view.js";

const LAYERS = {
  posteriors: ["Posteriors", "1σ and 2σ ellipses of up to 150 rows in view"],
  aggregate: ["Aggregate", "contours of the mean of all posteriors"],
  prior: ["Prior", "contours of the prior that enclose the same shares"],
  pictures: ["Pictures", "small pictures of rows on the map"],
};

export function watchToolbar(app) {
  const { store, manifest } = app;
  fillAxes(app);
  fillColours(app);

  for (const [name, [title, help]] of Object.entries(LAYERS)) {
    if (name === "pictures" && !manifest.thumbnails.rows.length) continue;
    if (name === "aggregate" && app.runs.every((run) => run.latent_dim === 1)) continue;
    if (name === "posteriors" && !app.runs.some((run) => run.sigma)) continue;
    const toggle = () => store.set({ layers: { ...store.state.layers, [name]: !store.state.layers[name] } });
    const button = element("button", { type: "button", id: `layer-${name}`, title: help, onclick: toggle }, title);
    byId("layers").append(button);
    store.watch(["layers"], ({ layers }) => button.setAttribute("aria-pressed", `${layers[name]}`));
  }

  const click = (id, act) => byId(id).addEventListener("click", act);
  click("zoom-in", () => app.look(zoomed(store.state.view, 1 / 1.4)));
  click("zoom-out", () => app.look(zoomed(store.state.view, 1.4)));
  click("zoom-all", () => app.showAll());
  click("save-png", () => savePng(app));
  click("save-svg", () => saveSvg(app));
  click("select-tool", () => store.set({ tool: store.state.tool === "select" ? "move" : "select" }));
  click("help", () => {
    byId("keys").hidden = !byId("keys").hidden;
    byId("help").setAttribute("aria-expanded", `${!byId("keys").hidden}`);
  });
  click("theme", () => {
    const order = ["auto", "light", "dark"];
    store.set({ theme: order[(order.indexOf(store.state.theme) + 1) % 3] });
  });
  store.watch(["tool"], ({ tool }) => byId("select-tool").setAttribute("aria-pressed", `${tool === "select"}`));
  store.watch(["theme"], ({ theme }) => {
    document.documentElement.dataset.theme = theme;
    byId("theme").title = `colours: ${theme === "auto" ? "as the system" : theme}`;
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => store.set({ theme: store.state.theme }));
}

function fillAxes(app) {
  const select = byId("axes");
  const d = Math.min(...app.runs.map((run) => run.latent_dim));
  const add = (value, text) => select.append(element("option", { value }, text));
  if (d === 1) add("0,0", "z1");
  else if (app.runs.some((run) => run.latent_dim > 2)) add("pca", "PC 1, PC 2 of the codes");
  const units = mostUsed(app, d, 12);
  for (const i of units) for (const j of units) if (i < j) add(`${i},${j}`, `z${i + 1}, z${j + 1}`);
  const { axes } = app.store.state;
  if (![...select.options].some((option) => option.value === axes)) {
    add(axes, axes === "pca" ? "PC 1, PC 2 of the codes" : `z${axes.split(",").map((k) => Number(k) + 1).join(", z")}`);
  }
  select.value = axes;
  select.addEventListener("change", () => app.setAxes(select.value));
}

// With many units only the pairs of those whose codes vary most are listed.
function mostUsed(app, d, most) {
  const units = Array.from({ length: d }, (_, k) => k);
  const spread = (k) => Math.max(...app.runs.map((run) => run.spread[k]));
  return d <= most ? units : units.sort((a, b) => spread(b) - spread(a)).slice(0, most).sort((a, b) => a - b);
}

function fillColours(app) {
  const select = byId("colour");
  const groups = { factor: "labels and factors", column: "columns", model: "model" };
  for (const [source, label] of Object.entries(groups)) {
    const choices = app.choices.filter((choice) => choice.source === source);
    if (choices.length) select.append(element("optgroup", { label }, ...choices.map(({ key, name }) => element("option", { value: key }, name))));
  }
  select.value = app.store.state.colour;
  select.addEventListener("change", () => app.setColour(select.value));
}
