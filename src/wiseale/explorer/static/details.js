// The tabs below the map: traversals, samples, the selected rows as a table, the measures.

import { byId, element, tell } from "./elements.js";
import { fixed, grouped, short } from "./numbers.js";
import { rowsOf } from "./selection.js";
import { latestWins } from "./store.js";
import { strip } from "./strip.js";
import { rowsTable, stepsTable } from "./values_table.js";

const STEPS = [-3, -2.25, -1.5, -0.75, 0, 0.75, 1.5, 2.25, 3];
const TABLE_STEPS = [-3, -2, -1, 0, 1, 2, 3];
const SAMPLES = 20;
const TABLE_SAMPLES = 8;
const MOST_LISTED = 200;

export function watchDetails(app) {
  const tabs = [
    { key: "traversal", name: "Traversals", show: showTraversal, watch: ["cursor", "theme"] },
    { key: "samples", name: "Samples", show: showSamples, watch: ["samplePage", "sampleRun", "theme"] },
    { key: "selection", name: "Selected rows", show: showSelection, watch: ["selection"] },
    ...(app.manifest.measures.length || app.runs.length > 1 ? [{ key: "measures", name: "Measures", show: showMeasures, watch: [] }] : []),
  ];
  for (const tab of tabs) {
    const button = element("button", { type: "button", id: `tab-${tab.key}`, onclick: () => choose(tab.key) }, tab.name);
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", `panel-${tab.key}`);
    button.addEventListener("keydown", (event) => turn(event, tab));
    byId("tabs").append(button);
    const panel = element("div", { id: `panel-${tab.key}`, tabIndex: 0 });
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", `tab-${tab.key}`);
    byId("tab-panels").append(panel);
    const show = latestWins(async () => {
      try {
        await tab.show(app, panel);
      } catch (error) {
        tell(error.message);
      }
    });
    let resting; // many codes are decoded at once: not before the cursor rests
    tab.refresh = () => {
      clearTimeout(resting);
      if (app.store.state.tab === tab.key) resting = setTimeout(show, 120);
    };
    app.store.watch(["tab", ...tab.watch], tab.refresh);
  }

  const choose = (key) => app.store.set({ tab: key });

  function turn(event, tab) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
    choose(next.key);
    byId(`tab-${next.key}`).focus();
  }

  app.store.watch(["tab", "selection"], ({ tab: open, selection }) => {
    for (const { key } of tabs) {
      byId(`tab-${key}`).setAttribute("aria-selected", `${key === open}`);
      byId(`tab-${key}`).tabIndex = key === open ? 0 : -1;
      byId(`panel-${key}`).hidden = key !== open;
    }
    byId("tab-selection").textContent = selection.count ? `Selected rows (${grouped(selection.count)})` : "Selected rows";
  });
}

// One line for each latent unit: it goes from −3 to 3, the others stay as at the cursor. The most used units first.
async function showTraversal(app, panel) {
  const { cursor } = app.store.state;
  if (!cursor) return;
  const run = app.runs[cursor.run];
  const isTable = app.manifest.observation.kind === "table";
  const steps = isTable ? TABLE_STEPS : STEPS;
  const most = Math.min(12, Math.floor(app.manifest.most_codes / steps.length));
  const units = [...run.spread.keys()].sort((a, b) => run.spread[b] - run.spread[a]).slice(0, most).sort((a, b) => a - b);
  const codes = units.flatMap((unit) => steps.map((value) => Float32Array.from(cursor.z, (old, k) => (k === unit ? value : old))));
  const decoded = await app.decode(run.number, codes);
  const size = decoded.length / codes.length;
  const grid = element("div", { className: isTable ? "tables" : "traversal" });
  units.forEach((unit, line) => {
    const from = line * steps.length;
    const part = decoded.subarray(from * size, (from + steps.length) * size);
    const [some, name] = [codes.slice(from, from + steps.length), `z${unit + 1}`];
    if (isTable) return grid.append(...stepsTable(app, run, some, part, name, steps));
    const pictures = strip(app, run, some, part, (_, k) => `${name} = ${fixed(steps[k])}`);
    return grid.append(element("span", { className: "unit" }, name), element("div", { className: "strip" }, ...pictures));
  });
  const who = app.runs.length > 1 ? ` by ${run.letter}` : "";
  const left = run.latent_dim > units.length ? ` The ${units.length} of ${run.latent_dim} units whose codes vary most are shown.` : "";
  const note = `Decoded${who}: each unit from −3 to 3, the others as at the cursor.${left}`;
  const kept = panel.contains(document.activeElement) ? [...panel.querySelectorAll("button")].indexOf(document.activeElement) : -1;
  panel.replaceChildren(element("p", { className: "note" }, note), grid);
  if (kept >= 0) panel.querySelectorAll("button")[kept]?.focus();
}

// Draws of the prior beside draws of the aggregate posterior, z = mu + sigma · ε of random rows.
async function showSamples(app, panel) {
  const { samplePage, cursor } = app.store.state;
  const run = app.runs[cursor?.run ?? 0];
  const d = run.latent_dim;
  const samples = app.manifest.observation.kind === "table" ? TABLE_SAMPLES : SAMPLES;
  const from = (samplePage % Math.floor(run.prior_draws / samples)) * samples;
  const prior = Array.from({ length: samples }, (_, k) => run.prior.slice((from + k) * d, (from + k + 1) * d));
  const random = seeded(samplePage);
  const aggregate = Array.from({ length: samples }, () => {
    const { mu, sigma } = run.posterior(Math.floor(random.uniform() * run.n));
    return Float32Array.from(mu, (value, k) => value + (sigma ? sigma[k] * random.normal() : 0));
  });
  const decoded = await app.decode(run.number, [...prior, ...aggregate]);
  const half = decoded.length / 2;
  const again = element("button", { type: "button", onclick: () => app.store.set({ samplePage: samplePage + 1 }) }, "Draw again");
  const marked = element("button", { type: "button", onclick: () => app.store.set({ drawn: app.store.state.drawn.length ? [] : prior, drawnRun: run.number }) }, "Mark the prior's draws on the map");
  const who = app.runs.length > 1 ? `, decoded by ${run.letter}` : "";
  const shown = (codes, part) => (app.manifest.observation.kind === "table" ? rowsTable(app, run, codes, part) : [element("div", { className: "strip large" }, ...strip(app, run, codes, part))]);
  panel.replaceChildren(
    element("div", { className: "row-of" }, again, marked),
    element("p", { className: "note" }, `From the ${run.own_prior ? "model's own prior" : "prior N(0, I)"}${who}`),
    ...shown(prior, decoded.subarray(0, half)),
    element("p", { className: "note" }, "From the aggregate posterior: a random row, z ~ q(z|x)"),
    ...shown(aggregate, decoded.subarray(half)),
  );
}

function seeded(seed) {
  let state = (seed + 1) * 2654435761;
  const uniform = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return { uniform, normal };
}

async function showSelection(app, panel) {
  const { selection } = app.store.state;
  if (!selection.count) {
    panel.replaceChildren(element("p", { className: "note" }, "Select rows with Shift + drag, the Select button, a class in the legend, or S on the map."));
    return;
  }
  const rows = rowsOf(selection, MOST_LISTED);
  await app.loadColourings();
  const factors = app.manifest.colourings.map((colouring, number) => ({ ...colouring, number })).slice(0, 12);
  const head = ["row", ...factors.map(({ name }) => name), ...app.runs.flatMap((run) => headings(app, run))];
  const body = rows.map((row) => {
    const go = element("button", { type: "button", onclick: () => app.goToRow(row) }, app.rowNumber(row));
    const cells = [...factors.map(({ number }) => app.valueText(number, row)), ...app.runs.flatMap((run) => numbersOf(run, row))];
    return element("tr", {}, element("th", { scope: "row" }, go), ...cells.map((text) => element("td", {}, text)));
  });
  const clear = element("button", { type: "button", onclick: () => app.clearSelection() }, "Clear");
  const left = selection.count > rows.length ? `; the first ${MOST_LISTED} are listed` : "";
  panel.replaceChildren(
    element("div", { className: "row-of" }, element("span", {}, `${grouped(selection.count)} of ${grouped(selection.n)} rows selected${left}`), clear),
    element("table", {}, element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { scope: "col" }, text)))), element("tbody", {}, ...body)),
  );
}

const headings = (app, run) => {
  const of = app.runs.length > 1 ? ` ${run.letter}` : "";
  return [`error${of}`, ...Array.from({ length: Math.min(run.latent_dim, 4) }, (_, k) => `z${k + 1}${of}`)];
};
const numbersOf = (run, row) => [short(run.error[row]), ...Array.from(run.posterior(row).mu.slice(0, 4), (value) => fixed(value))];

async function showMeasures(app, panel) {
  if (!app.manifest.measures.length) {
    panel.replaceChildren(element("p", { className: "note" }, "No run was evaluated yet: `wiseale evaluate RUN` measures it."));
    return;
  }
  const several = app.runs.length > 1;
  const differences = app.manifest.measures.some(({ differences: all }) => all.some(Boolean));
  const head = element("tr", {}, element("th", { scope: "col" }, "measure"));
  for (const run of app.runs) head.append(element("th", { scope: "col" }, several ? `${run.letter} · ${run.name}` : "value"));
  if (differences) for (const run of app.runs.slice(1)) head.append(element("th", { scope: "col" }, `${run.letter} − A over seeds`));
  const body = element("tbody");
  let question = "";
  for (const measure of app.manifest.measures) {
    if (measure.question !== question) {
      question = measure.question;
      body.append(element("tr", {}, element("th", { scope: "rowgroup", colSpan: 9 }, question)));
    }
    const line = element("tr", {}, element("td", {}, measure.name.replaceAll("_", " ")), ...measure.values.map((value) => element("td", {}, short(value, 4))));
    if (differences) line.append(...measure.differences.slice(1).map(difference));
    body.append(line);
  }
  const why = "95 % Student interval of the difference, paired by seed, over all evaluated seeds of the comparison.";
  const none = "Each value comes from one run; differences have intervals only between systems of one `wiseale compare` with several seeds.";
  const note = several ? element("p", { className: "note" }, differences ? why : none) : "";
  panel.replaceChildren(element("table", { id: "measures-table" }, element("thead", {}, head), body), note);
}

function difference(found) {
  const text = found ? `${short(found.mean)} ± ${short(found.half_width, 2)} (${found.seeds} seeds)` : "–";
  return element("td", { className: "difference" }, text);
}
