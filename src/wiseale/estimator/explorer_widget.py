"""The explorer inside a notebook: the page of ``--html`` in a frame, its selection available in Python.

The page is the same file, run in a frame of its own without access to the notebook; it decodes codes itself. What
passes between the two are messages with the numbers of selected rows.
"""

from __future__ import annotations

import anywidget
import traitlets

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


class ExplorerWidget(anywidget.AnyWidget):
    """The explorer's page in a notebook.

    Attributes:
        selected: numbers of the selected rows, counted from 0; may also be set.
        height: of the frame in pixels.
    """

    _esm = _SCRIPT
    page = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int(900).tag(sync=True)
    selected = traitlets.List(traitlets.Int()).tag(sync=True)
