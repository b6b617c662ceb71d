// Points without WebGL: a disc is blended into the pixels of a 2-D canvas for each.

export function canvasPoints(canvas) {
  const context = canvas.getContext("2d");
  let positions = new Float32Array(0);
  let colours = new Uint8Array(0);

  return {
    kind: "canvas",
    setPositions(values) {
      positions = values;
    },
    setColours(values) {
      colours = values;
    },
    // While the map moves, discs have hard edges: blending takes most of the time.
    draw(view, radius, ratio, step = 1, moving = false) {
      const { width, height } = canvas;
      if (!width || !height) return;
      const image = context.createImageData(width, height);
      const pixels = image.data;
      const words = new Uint32Array(pixels.buffer);
      const rgba = new Uint32Array(colours.buffer);
      const stamp = disc(radius * ratio, moving);
      const flat = stamp.parts.map(({ dx, dy }) => dy * width + dx);
      const scale = view.scale * ratio;
      const n = positions.length / 2;
      for (let i = 0; i < n; i += step) {
        const x = Math.round((positions[2 * i] - view.x) * scale + width / 2);
        const y = Math.round((view.y - positions[2 * i + 1]) * scale + height / 2);
        if (x < stamp.reach || y < stamp.reach || x >= width - stamp.reach || y >= height - stamp.reach) continue;
        if (moving) {
          for (const shift of flat) words[y * width + x + shift] = rgba[i];
          continue;
        }
        for (const { dx, dy, cover } of stamp.parts) {
          blend(pixels, 4 * ((y + dy) * width + x + dx), colours, 4 * i, cover);
        }
      }
      context.putImageData(image, 0, 0);
    },
  };
}

function blend(pixels, at, colours, from, cover) {
  const alpha = (colours[from + 3] / 255) * cover;
  const below = (pixels[at + 3] / 255) * (1 - alpha);
  const sum = alpha + below;
  for (let k = 0; k < 3; k++) pixels[at + k] = (colours[from + k] * alpha + pixels[at + k] * below) / sum;
  pixels[at + 3] = 255 * sum;
}

function disc(radius, hard) {
  const reach = Math.ceil(radius + 0.5);
  const parts = [];
  for (let dy = -reach; dy <= reach; dy++) {
    for (let dx = -reach; dx <= reach; dx++) {
      const cover = Math.max(0, Math.min(1, radius + 0.5 - Math.hypot(dx, dy)));
      if (cover > (hard ? 0.5 : 0)) parts.push({ dx, dy, cover });
    }
  }
  return { reach, parts };
}
