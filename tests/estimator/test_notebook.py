"""Estimators and runs in a notebook: the curves show the history, and a real kernel shows a bar."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import nbclient
import nbformat
import numpy as np
import pytest

from wiseale import AutoEncoder
from wiseale.cli import main
from wiseale.runs.notebook import curves_svg
from wiseale.runs.run import Run


def drawn(svg):
    """The points of every line in an SVG, by panel and line."""
    root = ElementTree.fromstring(svg)
    lines = root.iter("polyline")
    return [np.array([pair.split(",") for pair in line.get("points").split()], float) for line in lines]


def test_a_line_is_drawn_to_scale():
    train = [(1, 4.0), (2, 2.0), (3, 3.0), (5, 0.0)]
    points, held = drawn(curves_svg({"loss": {"train": train, "held out": [(1, 4.0), (5, 0.0)]}}))
    scale = np.polyfit([epoch for epoch, _ in train], points[:, 0], 1)
    assert points[:, 0] == pytest.approx(np.polyval(scale, [epoch for epoch, _ in train]), abs=0.1)
    scale = np.polyfit([value for _, value in train], points[:, 1], 1)
    assert scale[0] < 0  # larger is higher on the page
    assert points[:, 1] == pytest.approx(np.polyval(scale, [value for _, value in train]), abs=0.1)
    assert held == pytest.approx(points[[0, 3]])


def test_one_epoch_is_a_point_and_nothing_is_nothing():
    assert "<circle" in curves_svg({"loss": {"train": [(1, 2.0)], "held out": []}})
    assert curves_svg({"loss": {"train": [], "held out": []}}) == ""


@pytest.fixture(scope="module")
def fitted():
    return AutoEncoder(max_epochs=4, random_state=0).fit(np.random.default_rng(0).normal(size=(60, 3)))


def test_a_fitted_estimator_shows_its_curves(fitted):
    assert "<svg role" not in AutoEncoder()._repr_html_()
    page = fitted._repr_html_()
    svg = page[page.index("<svg role") :]
    assert len(drawn(svg)) == 8  # loss, reconstruction, prior and ELBO; train and held out
    assert f"train {fitted.history_[-1]['train_loss']:.4g} after epoch 4" in svg
    assert "<svg role" in fitted._repr_mimebundle_()["text/html"]


def test_a_run_shows_its_settings_and_curves_and_escapes_them(tmp_path):
    table = tmp_path / "<b>&.npy"
    np.save(table, np.random.default_rng(0).normal(size=(60, 3)))
    with pytest.raises(SystemExit):
        main(["train", str(table), "--max-epochs", "2", "--no-figures", "--out", str(tmp_path / "run")])
    page = Run.open(tmp_path / "run")._repr_html_()
    assert "<b>&.npy" not in page
    assert "&lt;b&gt;&amp;.npy" in page
    assert "2 of at most 2, finished" in page
    HTMLParser().feed(page)
    assert len(drawn(page[page.index("<svg") :])) == 8


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # of jupyter's own packages
def test_a_kernel_shows_a_bar_instead_of_lines():
    cell = (
        "import numpy as np\nfrom wiseale import AutoEncoder\nX = np.random.default_rng(0).normal(size=(60, 3))\n"
        "AutoEncoder(max_epochs=3, random_state=0, verbose=1).fit(X)"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    nbclient.NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
    outputs = notebook.cells[0].outputs
    pages = "".join("".join(output.get("data", {}).get("text/html", "")) for output in outputs)
    lines = "".join(output.get("text", "") for output in outputs)
    widgets = str(notebook.metadata.get("widgets", {}))
    assert "<svg role" in pages
    assert re.search(r"3/3", pages + widgets), outputs
    assert "epoch 3/3: loss" not in lines
