// Points in WebGL 2: positions and colours are uploaded once, panning and zooming change two uniforms.

const VERTEX = `#version 300 es
in vec2 position;
in vec4 colour;
uniform vec2 scale;
uniform vec2 shift;
uniform float size;
out vec4 tint;
void main() {
  gl_Position = vec4(position * scale + shift, 0.0, 1.0);
  gl_PointSize = size;
  tint = colour;
}`;

const FRAGMENT = `#version 300 es
precision highp float; // as in the vertex shader: both read size
in vec4 tint;
uniform float size;
out vec4 result;
void main() {
  float away = length(gl_PointCoord - 0.5) * size;
  float cover = clamp(size * 0.5 - away, 0.0, 1.0) * tint.a;
  result = vec4(tint.rgb * cover, cover);
}`;

export function webglPoints(canvas) {
  const gl = canvas.getContext("webgl2", { antialias: false, premultipliedAlpha: true });
  if (!gl) return null;
  const program = link(gl);
  if (!program) return null;
  const place = (name) => gl.getUniformLocation(program, name);
  const [scale, shift, size] = [place("scale"), place("shift"), place("size")];
  const buffers = { position: gl.createBuffer(), colour: gl.createBuffer() };
  let n = 0;
  gl.useProgram(program);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);

  function upload(name, values) {
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(gl.getAttribLocation(program, name));
  }

  function point(name, width, type, normalized, stride) {
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers[name]);
    gl.vertexAttribPointer(gl.getAttribLocation(program, name), width, type, normalized, stride, 0);
  }

  return {
    kind: "webgl",
    setPositions(values) {
      n = values.length / 2;
      upload("position", values);
    },
    setColours(values) {
      upload("colour", values);
    },
    // step > 1 draws only every step-th row.
    draw(view, radius, ratio, step = 1) {
      const { width, height } = canvas;
      gl.viewport(0, 0, width, height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      const [x, y] = [(2 * view.scale * ratio) / width, (2 * view.scale * ratio) / height];
      gl.uniform2f(scale, x, y);
      gl.uniform2f(shift, -view.x * x, -view.y * y);
      gl.uniform1f(size, 2 * radius * ratio + 1);
      point("position", 2, gl.FLOAT, false, 8 * step);
      point("colour", 4, gl.UNSIGNED_BYTE, true, 4 * step);
      if (n) gl.drawArrays(gl.POINTS, 0, Math.ceil(n / step));
    },
  };
}

function link(gl) {
  const program = gl.createProgram();
  for (const [type, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  return gl.getProgramParameter(program, gl.LINK_STATUS) ? program : null;
}
