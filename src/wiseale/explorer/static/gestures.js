// Mouse, touch and keys on a map.

import { toPlane, moved, zoomed } from "./view.js";

const CLICK = 5; // pixels a click may move

export function listen(app, panel) {
  const { stage, run } = panel;
  const pointers = new Map();
  let action = null;
  const place = (event) => {
    const box = stage.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const planeAt = (event) => toPlane(panel.view(), ...place(event));

  stage.addEventListener("pointerdown", (event) => {
    stage.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    const { state } = app.store;
    if (pointers.size === 2) action = { kind: "pinch", ...pinch() };
    else if (event.shiftKey || state.tool === "select") action = { kind: "lasso", points: [planeAt(event)] };
    else if (event.pointerType === "touch") action = { kind: "point" };
    else action = { kind: "pan", from: place(event), view: state.view, far: false };
    if (action.kind === "point") app.pointAt(run, planeAt(event));
  });

  stage.addEventListener("pointermove", (event) => {
    if (pointers.has(event.pointerId)) pointers.set(event.pointerId, place(event));
    if (!action) return event.pointerType === "touch" ? undefined : app.pointAt(run, planeAt(event));
    if (action.kind === "pinch") return pointers.size === 2 ? pinched() : undefined;
    if (action.kind === "point") return app.pointAt(run, planeAt(event));
    if (action.kind === "lasso") {
      action.points.push(planeAt(event));
      return app.store.set({ lasso: { run: run.number, points: action.points } });
    }
    const [x, y] = place(event);
    const [dx, dy] = [x - action.from[0], y - action.from[1]];
    if (Math.hypot(dx, dy) > CLICK) action.far = true;
    if (!action.far) return undefined;
    const { scale } = panel.view();
    return app.look(moved(action.view, -dx / scale, dy / scale));
  });

  function finish(event) {
    pointers.delete(event.pointerId);
    const done = action;
    if (pointers.size === 0) action = null;
    if (done?.kind === "lasso") app.finishLasso(run, done.points, event.altKey);
    if (done?.kind === "pan" && !done.far && event.type === "pointerup") app.pin();
  }
  stage.addEventListener("pointerup", finish);
  stage.addEventListener("pointercancel", finish);

  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    app.look(zoomed(app.store.state.view, Math.exp(event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), planeAt(event)));
  }, { passive: false });

  function pinch() {
    const [a, b] = [...pointers.values()];
    const middle = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
    return { distance: Math.hypot(a[0] - b[0], a[1] - b[1]), middle, view: app.store.state.view, held: toPlane(panel.view(), ...middle) };
  }

  // The point of the plane between the two fingers stays between them.
  function pinched() {
    const now = pinch();
    const span = action.view.span * (action.distance / Math.max(now.distance, 1));
    const scale = Math.min(stage.clientWidth, stage.clientHeight) / span;
    const x = action.held[0] - (now.middle[0] - stage.clientWidth / 2) / scale;
    const y = action.held[1] + (now.middle[1] - stage.clientHeight / 2) / scale;
    app.look({ span, x, y });
  }

  stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      ArrowLeft: () => step(-1, 0, event), ArrowRight: () => step(1, 0, event),
      ArrowUp: () => step(0, 1, event), ArrowDown: () => step(0, -1, event),
      Enter: () => app.pin(), n: () => app.goToNearestRow(run), s: () => app.toggleRow(), Escape: () => app.clearSelection(),
      "+": () => app.look(zoomed(app.store.state.view, 1 / 1.3)), "=": () => app.look(zoomed(app.store.state.view, 1 / 1.3)),
      "-": () => app.look(zoomed(app.store.state.view, 1.3)), 0: () => app.showAll(), " ": () => app.togglePlay(),
    };
    const act = keys[event.key] || keys[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  });

  function step(dx, dy, event) {
    const { view } = app.store.state;
    const distance = view.span * (event.shiftKey ? 0.08 : 0.015);
    const from = app.cursorIn(run);
    app.pointAt(run, [from[0] + dx * distance, from[1] + dy * distance], true);
  }
}
