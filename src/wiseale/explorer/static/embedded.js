// The data of a self-contained page: JSON in the page, columns as compressed base64; codes are decoded in the page.

import { makeDecoder } from "./decoder.js";
import { makeStoredDecoder } from "./stored_decoder.js";

const PAUSE = 24; // milliseconds of decoding after which the page may draw and react

async function bytes(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

const floats = async (text) => new Float32Array(await bytes(text));

export async function embeddedSource(element) {
  const data = JSON.parse(element.textContent);
  const { manifest } = data;
  const decoders = await Promise.all(data.decoders.map(async ({ description, values }) => decoderOf(description, await bytes(values))));
  const size = manifest.observation.shape.reduce((a, b) => a * b, 1);
  let pictures = null;
  const thumbnails = async () => (pictures ??= new Uint8Array(await bytes(data.thumbnails)));
  const place = new Map(manifest.thumbnails.rows.map((row, number) => [row, number]));
  let originals = null;

  async function decode(run, codes) {
    const d = manifest.runs[run].latent_dim;
    const decoded = new Float32Array((codes.length / d) * size);
    let paused = performance.now();
    for (let k = 0; k * d < codes.length; k++) {
      decoded.set(decoders[run](codes.subarray(k * d, (k + 1) * d)), k * size);
      if (performance.now() - paused > PAUSE) {
        await new Promise((resolve) => setTimeout(resolve));
        paused = performance.now();
      }
    }
    return decoded;
  }

  // Originals: every row of a table; of images and signals those with small pictures, if these are not reduced.
  async function original(row) {
    const { kind, low, high } = manifest.observation;
    if (kind === "table") {
      originals ??= await floats(data.originals);
      return originals.subarray(row * size, (row + 1) * size);
    }
    if (!place.has(row) || manifest.thumbnails.shape.reduce((a, b) => a * b, 1) !== size) return null;
    const all = await thumbnails();
    const from = place.get(row) * size;
    return Float32Array.from(all.subarray(from, from + size), (value) => low[0] + (value / 255) * (high[0] - low[0]));
  }

  return {
    manifest,
    decodeNote: data.decode_note,
    acceptsRows: false,
    geometry: (run) => floats(data.geometry[run]),
    colouring: (number) => floats(data.colourings[number]),
    contours: async (run, axes) => data.contours[run][axes] ?? null,
    original,
    thumbnails,
    decode,
    ownRows: () => Promise.reject(new Error("this file holds no encoder")),
  };
}

const decoderOf = (description, values) => (description.kind === "network" ? makeDecoder : makeStoredDecoder)(description, values);
