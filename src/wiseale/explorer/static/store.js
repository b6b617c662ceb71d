// The page's state: one object, changed by set(), watched by key. Watchers run once per animation frame.

export function makeStore(initial) {
  let state = initial;
  const watchers = [];
  let changed = new Set();
  let scheduled = false;

  function notify() {
    scheduled = false;
    const keys = changed;
    changed = new Set();
    for (const { names, run } of watchers) {
      if (names.some((name) => keys.has(name))) run(state);
    }
  }

  return {
    get state() {
      return state;
    },
    set(patch) {
      state = { ...state, ...patch };
      for (const key of Object.keys(patch)) changed.add(key);
      if (!scheduled) {
        scheduled = true;
        requestAnimationFrame(notify);
      }
    },
    watch(names, run) {
      watchers.push({ names, run });
    },
  };
}

// One call at a time: while one runs, only the newest request is kept.
export function latestWins(work) {
  let running = false;
  let waiting = null;
  return async function request(...values) {
    waiting = values;
    if (running) return;
    running = true;
    try {
      while (waiting) {
        const now = waiting;
        waiting = null;
        await work(...now);
      }
    } finally {
      running = false;
    }
  };
}
