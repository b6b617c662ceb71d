// Runs a trained decoder in the page: a code z in, x in the user's units out.
// The description and the weights are written by wiseale/explorer/weights.py, which lists the kinds of nodes.
// Arrays are flat, channel after channel, and in double precision between the layers.

/**
 * @param {{latent_dim: number, x_shape: number[], decoder: object}} description
 * @param {ArrayBuffer} weights little-endian float32
 * @returns {(z: Float32Array) => Float32Array} the decoder; x has the length of x_shape's product
 */
export function makeDecoder(description, weights) {
  const values = readFloats(weights);
  const run = prepare(description.decoder, values);
  const length = description.x_shape.reduce((product, n) => product * n, 1);
  return (z) => {
    if (z.length !== description.latent_dim) {
      throw new Error(`the code has ${z.length} entries, the decoder takes ${description.latent_dim}`);
    }
    const x = run(Float64Array.from(z));
    if (x.length !== length) throw new Error(`the decoder returned ${x.length} numbers, not ${length}`);
    return Float32Array.from(x);
  };
}

function readFloats(buffer) {
  const littleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
  if (littleEndian) return new Float32Array(buffer);
  const view = new DataView(buffer);
  return Float32Array.from({ length: buffer.byteLength / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

// From a node to a function (Float64Array) => Float64Array. A function may change its argument and return it.
function prepare(node, values) {
  const make = KINDS[node.kind];
  if (!make) throw new Error(`unknown kind of layer: ${node.kind}`);
  return make(node, values);
}

const KINDS = {
  sequence(node, values) {
    const parts = node.nodes.map((part) => prepare(part, values));
    return (x) => parts.reduce((y, part) => part(y), x);
  },

  sum(node, values) {
    const branches = node.branches.map((branch) => prepare(branch, values));
    return (x) => {
      const total = branches[0](x.slice());
      for (const branch of branches.slice(1)) {
        const y = branch(x.slice());
        if (y.length !== total.length) throw new Error("the branches of a sum differ in length");
        for (let i = 0; i < total.length; i++) total[i] += y[i];
      }
      return total;
    };
  },

  relu: () => (x) => {
    for (let i = 0; i < x.length; i++) if (x[i] < 0) x[i] = 0;
    return x;
  },

  sigmoid: () => (x) => {
    for (let i = 0; i < x.length; i++) x[i] = 1 / (1 + Math.exp(-x[i]));
    return x;
  },

  // The link functions of a table's columns; entries outside the parts are numbers and stay as they are.
  links: ({ parts, most }) => (x) => {
    for (const { link, start, width } of parts) LINKS[link](x.subarray(start, start + width), most);
    return x;
  },

  linear(node, values) {
    const { inputs, outputs } = node;
    const weight = part(values, node.weight, inputs * outputs);
    const bias = part(values, node.bias, outputs);
    return (x) => {
      const y = new Float64Array(outputs);
      for (let o = 0, w = 0; o < outputs; o++) {
        let sum = bias[o];
        for (let i = 0; i < inputs; i++, w++) sum += weight[w] * x[i];
        y[o] = sum;
      }
      return y;
    };
  },

  scale_channels(node, values) {
    const scale = part(values, node.scale, node.channels);
    const shift = part(values, node.shift, node.channels);
    return (x) => {
      const positions = x.length / node.channels;
      for (let c = 0, i = 0; c < node.channels; c++) {
        for (let p = 0; p < positions; p++, i++) x[i] = x[i] * scale[c] + shift[c];
      }
      return x;
    };
  },

  units(node, values) {
    const [scale, mean, rest] = [node.scale, node.mean, node.mean_rest].map((at) => part(values, at, node.entries));
    const step = node.entries === 1 ? 0 : 1; // one mean and scale for all entries, or one for each
    return (x) => {
      for (let i = 0, j = 0; i < x.length; i++, j += step) x[i] = x[i] * scale[j] + rest[j] + mean[j];
      return x;
    };
  },

  // Each input position adds value · filter to kernel[0] × kernel[1] output positions; what falls outside is cropped.
  transposed_conv(node, values) {
    const { inputs, outputs, stride } = node;
    const [height, width] = twoAxes(node.size, 1);
    const [outHeight, outWidth] = twoAxes(node.out, 1);
    const [kernelHeight, kernelWidth] = twoAxes(node.kernel, 1);
    const [cropTop, cropLeft] = twoAxes(node.crop, 0);
    const filters = part(values, node.weight, inputs * kernelHeight * kernelWidth * outputs);
    const bias = part(values, node.bias, outputs);
    const positions = outHeight * outWidth;
    return (x) => {
      const sums = new Float64Array(positions * outputs); // channels last
      for (let c = 0, i = 0; c < inputs; c++) {
        const filter = c * kernelHeight * kernelWidth * outputs;
        for (let row = 0; row < height; row++) {
          for (let column = 0; column < width; column++, i++) {
            const value = x[i];
            if (value === 0) continue; // about half of what a ReLU returns
            for (let kr = 0; kr < kernelHeight; kr++) {
              const outRow = row * stride + kr - cropTop;
              if (outRow < 0 || outRow >= outHeight) continue;
              for (let kc = 0; kc < kernelWidth; kc++) {
                const outColumn = column * stride + kc - cropLeft;
                if (outColumn < 0 || outColumn >= outWidth) continue;
                let w = filter + (kr * kernelWidth + kc) * outputs;
                const first = (outRow * outWidth + outColumn) * outputs;
                for (let o = first; o < first + outputs; o++, w++) sums[o] += value * filters[w];
              }
            }
          }
        }
      }
      const y = new Float64Array(sums.length); // channels first
      for (let o = 0, j = 0; o < outputs; o++) {
        for (let p = 0; p < positions; p++, j++) y[j] = sums[p * outputs + o] + bias[o];
      }
      return y;
    };
  },
};

// In place: probabilities of a level, of each of several levels, and the rate of a count.
const LINKS = {
  sigmoid: (x) => x.forEach((value, i) => (x[i] = 1 / (1 + Math.exp(-value)))),
  softmax: (x) => {
    const largest = Math.max(...x);
    let sum = 0;
    for (let i = 0; i < x.length; i++) sum += x[i] = Math.exp(x[i] - largest);
    for (let i = 0; i < x.length; i++) x[i] /= sum;
  },
  exp: (x, most) => x.forEach((value, i) => (x[i] = Math.exp(Math.min(value, most)))),
};

function part(values, offset, length) {
  if (offset + length > values.length) throw new Error("the weights are shorter than the description says");
  return values.subarray(offset, offset + length);
}

// Signals are images of one row.
function twoAxes(axes, missing) {
  return axes.length === 2 ? axes : [missing, axes[0]];
}
