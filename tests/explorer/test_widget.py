"""The explorer in a notebook's cell: the widget's script in Chromium, around a stand-in for the notebook's model."""

import anywidget
import numpy as np
import pytest
from tests.explorer.browser import Watch

from wiseale import AutoEncoder

# What a notebook gives to the script: an element, and a model whose values are shared with Python.
NOTEBOOK = """async ([script, values]) => {
    const heard = {};
    window.values = values;
    window.change = (name, value) => { values[name] = value; heard[`change:${name}`]?.(); };
    const model = { get: (name) => values[name], set: (name, value) => (values[name] = value), save_changes: () => {},
                    on: (name, act) => (heard[name] = act) };
    const module = await import(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })));
    module.default.render({ model, el: document.body });
}"""


X = np.random.default_rng(0).normal(size=(120, 3))


@pytest.fixture(scope="module")
def widget():
    est = AutoEncoder(network="mlp:hidden=8", max_epochs=1, random_state=0).fit(X)
    return est.explore(X, X[:, 0] > 0, widget=True)


def test_estimators_return_the_page_as_a_widget(widget):
    assert isinstance(widget, anywidget.AnyWidget)
    assert widget.page.startswith("<!doctype html>")
    assert widget.selected == []


def test_selections_pass_between_the_cell_and_the_page(browser, widget):
    page, watch = browser.new_page(), Watch()
    watch.follow(page)
    try:
        page.evaluate(NOTEBOOK, [widget._esm, {"page": widget.page, "height": 800, "selected": []}])
        frame = page.frame_locator("iframe")
        frame.locator("html[data-ready]").wait_for(timeout=40_000)
        assert "120 rows" in frame.locator("#about").text_content()
        frame.locator("#legend button").first.click()
        page.wait_for_function("() => values.selected.length > 0", timeout=40_000)
        chosen = page.evaluate("values.selected")
        assert chosen == np.flatnonzero(X[:, 0] <= 0).tolist()  # the rows of one class, counted from 0 in Python
        page.evaluate("change('selected', [3, 7])")
        frame.locator("#tab-selection").get_by_text("(2)").or_(
            frame.locator("#tab-selection:has-text('(2)')")
        ).wait_for()
        assert watch.errors == []
    finally:
        page.close()
