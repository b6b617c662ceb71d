"""``AutoEncoder.explore``: the latent-space explorer on an array, without a run directory.

In a notebook it is the page of ``--html`` in a frame of its own without access to the notebook; it decodes codes
itself. What passes between the two are messages with the numbers of selected rows.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wiseale.data.dataset import Array, Rows
from wiseale.errors import ConfigError
from wiseale.models.inference import Codec


def explore(
    codec: Codec,
    x: Array,
    labels: Any = None,
    *,
    html: Path | None = None,
    widget: bool = False,
    port: int = 0,
    browser: bool = True,
) -> Any:
    """Serve the explorer of these rows until Ctrl-C, or write it to one file, or return it as a notebook's widget."""
    if widget and importlib.util.find_spec("anywidget") is None:
        raise ConfigError("the explorer's widget needs a package that is missing: pip install 'wiseale[notebook]'")
    if html is None and not widget and not all(importlib.util.find_spec(name) for name in ("starlette", "uvicorn")):
        raise ConfigError("the explorer's server needs packages that are missing: pip install 'wiseale[explore]'")

    from wiseale.explorer.html import page, write_page
    from wiseale.explorer.opening import Opened, ShownRows
    from wiseale.explorer.session import make_session

    rows = Rows(x, "unit" if x.dtype == np.uint8 else "values", _factors(labels, len(x)))
    shown = ShownRows(rows, "all rows", np.arange(len(x)), len(x), data="X", columns=codec.space.names)
    session = make_session([Opened("AutoEncoder", codec, None)], shown)
    if html is not None:
        write_page(session, html)
        return None
    if widget:
        return explorer_widget(page(session))

    from wiseale.explorer.server import serve

    def ready(url: str) -> None:
        print(f"{url}  (Ctrl-C ends it)", flush=True)
        if browser:
            import webbrowser

            webbrowser.open(url)

    serve(session, "127.0.0.1", port, ready)
    return None


def explorer_widget(page: str) -> Any:
    """The explorer's page as a widget with ``selected``, the rows selected (from 0), and ``height`` in pixels."""
    import anywidget
    import traitlets

    class ExplorerWidget(anywidget.AnyWidget):
        _esm = _SCRIPT
        page = traitlets.Unicode().tag(sync=True)
        height = traitlets.Int(900).tag(sync=True)
        selected = traitlets.List(traitlets.Int()).tag(sync=True)

    return ExplorerWidget(page=page)


_SCRIPT = """
function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts allow-downloads");
  frame.title = "latent-space explorer";
  frame.style.cssText = "width: 100%; border: 0; border-radius: 8px";
  const size = () => (frame.style.height = `${model.get("height")}px`);
  const send = () => frame.contentWindow?.postMessage({ wisealeSelect: model.get("selected") }, "*");
  let told = ""; // what the page has said last: it is not sent back
  const hear = ({ source, data }) => {
    if (source !== frame.contentWindow || !Array.isArray(data?.wisealeSelected)) return;
    told = data.wisealeSelected.join();
    model.set("selected", data.wisealeSelected);
    model.save_changes();
  };
  window.addEventListener("message", hear);
  model.on("change:height", size);
  model.on("change:selected", () => model.get("selected").join() !== told && send());
  size();
  frame.srcdoc = model.get("page");
  el.append(frame);
  return () => window.removeEventListener("message", hear);
}
export default { render };
"""


def _factors(labels: Any, n: int) -> dict[str, Array]:
    """Labels by name, each (n,); labels without a name are called ``label``."""
    if labels is None:
        return {}
    named = dict(labels) if isinstance(labels, Mapping) else {"label": labels}
    factors = {str(name): np.asarray(values) for name, values in named.items()}
    for name, values in factors.items():
        if values.shape != (n,):
            raise ConfigError(f"labels {name!r} have the shape {values.shape}, but X has {n} rows: give one for each")
    return factors
