// Saves the maps as SVG, or as PNG drawn from that SVG.

import { svg, tell, themeColours } from "./elements.js";

const CAPTION = 26;

export function saveSvg(app) {
  const { text } = compose(app);
  download(new Blob([text], { type: "image/svg+xml" }), "latent-space.svg");
}

export async function savePng(app) {
  const { text, width, height } = compose(app);
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * width, 2 * height];
    canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
    canvas.toBlob((blob) => download(blob, "latent-space.png"));
  } catch {
    tell("the picture could not be drawn: save as SVG instead");
  } finally {
    URL.revokeObjectURL(url);
  }
}

// All panels side by side; points and small pictures are embedded as PNG, everything else stays vector.
function compose(app) {
  const theme = themeColours();
  const parts = app.panels.map((panel) => {
    panel.drawNow(); // a WebGL canvas can only be read in the frame it was drawn in
    return { panel, pictures: [panel.pointCanvas, panel.pictureCanvas].filter((canvas) => !canvas.hidden).map((canvas) => canvas.toDataURL()) };
  });
  const { clientWidth: width, clientHeight: height } = app.panels[0].stage;
  const columns = parts.length > 1 ? 2 : 1;
  const lines = Math.ceil(parts.length / columns);
  const size = { width: columns * width, height: lines * (height + CAPTION) };
  const root = svg("svg", { ...size, viewBox: `0 0 ${size.width} ${size.height}`, xmlns: "http://www.w3.org/2000/svg" });
  root.append(svg("rect", { ...size, fill: theme.card }));
  parts.forEach(({ panel, pictures }, number) => {
    const place = svg("svg", { x: (number % columns) * width, y: Math.floor(number / columns) * (height + CAPTION), width, height: height + CAPTION });
    const caption = svg("text", { x: 8, y: 18, fill: theme.ink, "font-family": "system-ui, sans-serif", "font-size": 14, "font-weight": 600 });
    caption.textContent = `${app.runs.length > 1 ? `${panel.run.letter} · ` : ""}${panel.run.name} (${panel.run.objective})`;
    const [[axes], [world, marks]] = [panel.under.children, panel.root.children];
    const body = svg("svg", { y: CAPTION, width, height });
    const images = pictures.map((href) => svg("image", { href, width, height }));
    body.append(axes.cloneNode(true), ...images, world.cloneNode(true), marks.cloneNode(true));
    place.append(caption, body);
    root.append(place);
  });
  return { text: new XMLSerializer().serializeToString(root), ...size };
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  tell(`saved as ${name}`);
}
