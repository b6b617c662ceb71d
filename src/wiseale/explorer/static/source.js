// Where the page's data comes from: this server, or the page itself (embedded.js). Both offer the same functions.
// decode(run, codes) takes codes one after another in a Float32Array and resolves to observations in the same order.

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("the server does not answer: is `wiseale explore` still running?");
  }
  if (!answer.ok) {
    const told = await answer.json().catch(() => ({}));
    throw new Error(told.error || `the server answered ${answer.status}`);
  }
  return answer;
}

const floats = async (path, options) => new Float32Array(await (await ask(path, options)).arrayBuffer());
const json = async (path, options) => (await ask(path, options)).json();

export async function httpSource() {
  const [manifest, first] = await Promise.all([json("session.json"), floats("geometry/0")]);
  return {
    manifest,
    decodeNote: "",
    acceptsRows: true,
    geometry: (run) => (run === 0 ? first : floats(`geometry/${run}`)),
    colouring: (number) => floats(`colouring/${number}`),
    contours: (run, axes) => json(`contours/${run}/${axes}`),
    original: async (row) => (manifest.originals ? floats(`original/${row}`) : null),
    thumbnails: async () => new Uint8Array(await (await ask("thumbnails")).arrayBuffer()),
    decode: (run, codes) => floats(`decode/${run}`, { method: "POST", body: codes }),
    ownRows: (run, content, suffix) => json(`own/${run}/${suffix}`, { method: "POST", body: content }),
  };
}

// mu, sigma, error and draws of the prior, as views of a run's geometry.
export function splitGeometry(values, run, n) {
  const d = run.latent_dim;
  let at = 0;
  const take = (length) => values.subarray(at, (at += length));
  const mu = take(n * d);
  const sigma = run.stochastic ? take(n * d) : null;
  return { mu, sigma, error: take(n), prior: take(run.prior_draws * d) };
}
