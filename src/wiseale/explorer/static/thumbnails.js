// Small pictures of rows on the map: images from one large canvas, signals as sparklines.

import { element } from "./elements.js";

const SIDE = 30;
const COLUMNS = 40;

export async function loadThumbnails(source, { thumbnails }) {
  const { rows, shape } = thumbnails;
  const bytes = await source.thumbnails();
  return { rows, side: SIDE, paint: shape.length === 3 ? imagePainter(bytes, rows.length, shape) : sparklinePainter(bytes, shape), bytes };
}

function imagePainter(bytes, n, [channels, height, width]) {
  const atlas = element("canvas", { width: COLUMNS * width, height: Math.ceil(n / COLUMNS) * height });
  const context = atlas.getContext("2d");
  const area = width * height;
  for (let number = 0; number < n; number++) {
    const image = context.createImageData(width, height);
    for (let k = 0; k < area; k++) {
      for (let c = 0; c < 3; c++) image.data[4 * k + c] = bytes[(number * channels + Math.min(c, channels - 1)) * area + k];
      image.data[4 * k + 3] = 255;
    }
    context.putImageData(image, (number % COLUMNS) * width, Math.floor(number / COLUMNS) * height);
  }
  return (target, number, x, y, colour) => {
    target.fillStyle = colour;
    target.fillRect(x - 1.5, y - 1.5, SIDE + 3, SIDE + 3);
    target.imageSmoothingEnabled = width > SIDE;
    target.drawImage(atlas, (number % COLUMNS) * width, Math.floor(number / COLUMNS) * height, width, height, x, y, SIDE, SIDE);
  };
}

function sparklinePainter(bytes, [channels, length]) {
  return (target, number, x, y, colour, theme) => {
    target.fillStyle = theme.card;
    target.globalAlpha = 0.85;
    target.fillRect(x - 2, y + 2, SIDE + 4, SIDE - 4);
    target.globalAlpha = 1;
    target.strokeStyle = colour;
    target.lineWidth = 1.2;
    for (let c = 0; c < Math.min(channels, 3); c++) {
      target.beginPath();
      for (let t = 0; t < length; t++) {
        const value = bytes[(number * channels + c) * length + t] / 255;
        target.lineTo(x + (t / (length - 1)) * SIDE, y + 4 + (1 - value) * (SIDE - 8));
      }
      target.stroke();
    }
  };
}
