"""Models of the zoo in the explorer: the map of stored codes, served without the dataset."""

import numpy as np
import pytest
from tests.explorer.browser import opened
from tests.explorer.local_server import local_server

from wiseale.errors import DataError
from wiseale.explorer.opening import open_models, shown_dataset, stored_rows
from wiseale.explorer.session import make_session
from wiseale.models.places import locate, read_codes


@pytest.fixture(scope="module")
def session():
    models = open_models([locate("zoo:mnist-wise_ale"), locate("zoo:mnist-wae_mmd")])
    return make_session(models, stored_rows(models))


def test_codes_are_the_stored_ones_and_rows_their_reconstructions(session):
    for run, name in zip(session.runs, ("mnist-wise_ale", "mnist-wae_mmd"), strict=True):
        kept = read_codes(locate(f"zoo:{name}"))
        assert np.array_equal(run.codes.mu, kept.codes.mu)
        assert (run.codes.sigma is None) == (name == "mnist-wae_mmd")
    rows = np.array([0, 500])
    assert np.array_equal(session.x(rows), session.runs[0].decode(session.runs[0].codes.mu[rows]))
    assert len(session.thumbnail_rows) == 0


def test_models_without_stored_codes_have_none(tmp_path):
    mixed = open_models([locate("zoo:mnist-aevb"), locate("zoo:fashion_mnist-aevb")])
    assert stored_rows(mixed) is None
    assert shown_dataset(mixed) is None
    assert shown_dataset(open_models([locate("zoo:sine-aevb")])) == "sine:n=64,n_test=1000"


def test_other_rows_under_two_models_are_refused(monkeypatch):
    models = open_models([locate("zoo:mnist-aevb"), locate("zoo:mnist-wise_ale")])
    kept = [read_codes(locate("zoo:mnist-aevb")), read_codes(locate("zoo:mnist-wise_ale"))]
    kept[1].numbers[0] += 1
    monkeypatch.setattr("wiseale.explorer.opening.read_codes", lambda path: kept["wise_ale" in path.name])
    with pytest.raises(DataError, match="--data mnist"):
        stored_rows(models)


def test_the_page_shows_reconstructions_and_says_that_originals_are_not_kept(browser, session):
    with local_server(session) as server, opened(browser, server.url) as page:
        page.locator(".stage").first.focus()
        page.keyboard.press("n")
        page.wait_for_selector("#row-x figure >> nth=1")
        assert page.locator("#row-x figcaption").all_text_contents() == ["A", "B"]
        assert "not kept here" in page.locator("#row-facts").text_content()
