// node run_decoder.mjs FOLDER: decodes FOLDER/codes.f32 with FOLDER/decoder.mjs; writes x.f32, prints seconds per code.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const { makeDecoder } = await import(pathToFileURL(`${folder}/decoder.mjs`));
const floats = (name) => {
  const bytes = readFileSync(`${folder}/${name}`);
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
};
const description = JSON.parse(readFileSync(`${folder}/description.json`, "utf8"));
const decode = makeDecoder(description, floats("weights.f32"));
const codes = new Float32Array(floats("codes.f32"));
const found = [];
const start = performance.now();
for (let i = 0; i < codes.length; i += description.latent_dim) {
  found.push(decode(codes.subarray(i, i + description.latent_dim)));
}
console.log((performance.now() - start) / 1000 / found.length);
writeFileSync(`${folder}/x.f32`, Buffer.concat(found.map((x) => Buffer.from(x.buffer))));
