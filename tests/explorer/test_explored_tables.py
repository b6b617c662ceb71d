"""Tables with categories, counts and missing cells: the page shows words and the data's units."""

import io

import numpy as np
import pytest
import torch
from tests.explorer.browser import drop, has_count, middle, opened, serious_findings
from tests.explorer.conftest import open_session, train
from tests.explorer.local_server import local_server

from wiseale.data import load_dataset
from wiseale.errors import DataError
from wiseale.explorer.html import page_decoder, stored_decoder, write_page
from wiseale.explorer.manifest import manifest
from wiseale.explorer.opening import choose_rows, open_models

SPECIES = ["Adelie", "Chinstrap", "Gentoo"]


def test_columns_have_their_names_kinds_and_levels(mixed_session):
    columns = manifest(mixed_session)["observation"]["columns"]
    assert [(c["name"], c["kind"], list(c["levels"])) for c in columns] == [
        ("species", "category", SPECIES),
        ("mass", "number", []),
        ("visits", "count", []),
        ("sex", "binary", ["female", "male"]),
        ("length", "number", []),
    ]
    assert [(c["start"], c["width"], c["whole"]) for c in columns][:3] == [(0, 3, False), (3, 1, True), (4, 1, True)]


def test_rows_are_entries_and_missing_cells_are_nan(mixed_session):
    cells = np.asarray(load_dataset(mixed_session.shown.data).train.x)[mixed_session.shown.numbers]
    x = mixed_session.x(np.arange(len(cells)))
    assert x.shape == (400, 7)
    assert (x[:, :3].argmax(1) == cells[:, 0]).all()
    assert (x[:, :3].sum(1) == 1).all()
    assert np.isnan(x[:, 3]).sum() == 45  # every 9th of 400
    assert np.array_equal(x[:, [3, 4, 6]], cells[:, [1, 2, 4]].astype(np.float32), equal_nan=True)


def test_decoded_entries_are_means_probabilities_and_rates_of_the_likelihood(mixed_session):
    run = mixed_session.runs[0]
    z = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
    decoded = run.decode(z)
    cells = run.codec.decode(z)
    assert np.allclose(decoded[:, :3].sum(1), 1, atol=1e-6)
    assert (decoded[:, :3].argmax(1) == cells[:, 0]).all()
    assert np.allclose(decoded[:, 3:], cells[:, 1:], rtol=1e-6)
    likelihood = run.codec.network.decode(torch.from_numpy(z).double())
    for level in range(3):  # log p(species = level), the other cells missing
        row = torch.full((64, 5), torch.nan, dtype=torch.float64)
        row[:, 0] = level
        assert np.allclose(decoded[:, level], likelihood.log_prob(row).exp().detach(), rtol=1e-5)


def test_colours_are_levels_numbers_and_nan(mixed_session):
    found = {one.name: one for one in mixed_session.colourings}
    assert list(found) == ["species", "sex", "mass", "visits", "length", "training"]  # columns with levels first
    assert found["species"].classes == tuple(SPECIES)
    assert np.isnan(found["mass"].values).sum() == 45
    assert np.isnan(found["sex"].values).sum() == 58


def test_dropped_cells_are_read_by_the_models_kinds_and_may_be_missing(mixed_session):
    run = mixed_session.runs[0]
    own = run.own_rows(b"sex,length,species,mass,visits\nmale,44.5,Gentoo,,7\n", "csv")
    assert np.array_equal(own.x, np.float32([[0, 0, 1, np.nan, 7, 1, 44.5]]), equal_nan=True)
    assert np.allclose(own.codes.mu, run.codec.encode(np.array([[2, np.nan, 7, 1, 44.5]])).mu)
    assert own.x_hat.shape == (1, 7)
    with pytest.raises(DataError, match="Emperor"):
        run.own_rows(b"sex,length,species,mass,visits\nmale,44.5,Emperor,,7\n", "csv")
    with pytest.raises(DataError, match=r"no column \"species\""):
        run.own_rows(b"sex,length,mass,visits\nmale,44.5,1,7\n", "csv")
    with pytest.raises(DataError, match="levels"):
        run.own_rows(_npy(np.zeros((2, 5))), "npy")


def _npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_other_rows_are_read_by_the_models_kinds(mixed_run, tmp_path):
    """A file in which one level, all of a column and the order of columns differ from the training file."""
    (tmp_path / "few.csv").write_text("mass,species,sex,visits,length\n4000,Gentoo,male,2,41\n,Chinstrap,,3,40\n")
    session = open_session(mixed_run, data=str(tmp_path / "few.csv"))
    assert np.array_equal(session.x(np.arange(2))[:, :3], np.float32([[0, 0, 1], [0, 1, 0]]))


def test_models_that_read_columns_differently_are_refused(mixed_run, folder):
    other = train(
        f"{folder / 'birds.csv'}",
        folder / "kinds",
        "--latent-dim",
        "2",
        "--columns",
        "visits:number",
        "--max-epochs",
        "1",
    )
    with pytest.raises(DataError, match="explore them apart"):
        open_models([mixed_run, other])


def test_the_page_runs_the_network_and_stored_decodes_hold_probabilities(mixed_session):
    run, observation = mixed_session.runs[0], mixed_session.observation
    assert page_decoder(run, observation).description["kind"] == "network"
    stored = stored_decoder(run, observation)
    points = stored.description["points"]
    values = np.frombuffer(stored.content, "<f4").reshape(points * points, 7)
    assert np.allclose(values[:, :3].sum(1), 1, atol=1e-5)


def shown_row(page, place="#cursor-x"):
    """The texts of a table of values, by column."""
    lines = page.locator(f"{place} tbody tr").all()
    return {line.locator("th").inner_text(): line.locator("td").first.inner_text() for line in lines}


def expected_row(page, session):
    """What the model gives for the code on the page: the likeliest species, and the mass in whole numbers."""
    z = np.array([[float(value) for value in page.get_attribute("#cursor-x", "data-code").split()]], np.float32)
    decoded = session.runs[0].codec.decode(z)[0]
    return SPECIES[int(decoded[0])], decoded[1]


@pytest.mark.parametrize("where", ["server", "one file"])
def test_rows_are_shown_in_words_and_units(browser, mixed_session, tmp_path, where):
    write_page(mixed_session, tmp_path / "page.html")
    with local_server(mixed_session) as server:
        url = server.url if where == "server" else (tmp_path / "page.html").as_uri()
        with opened(browser, url, allow="422") as page:
            page.mouse.move(*middle(page, at=(0.58, 0.44)))
            page.wait_for_function("() => document.querySelector('#cursor-x').dataset.code !== '0.000 0.000'")
            shown, (species, mass) = shown_row(page), expected_row(page, mixed_session)
            assert shown["species"].startswith(species)
            assert abs(float(shown["mass"]) - mass) < 3  # codes are written to the page with three decimals
            assert page.locator("#colour option").first.text_content() == "species"
            page.select_option("#colour", label="mass")
            page.wait_for_function("() => document.querySelector('#legend').textContent.includes('missing')")
            page.wait_for_selector("#panel-traversal .steps >> nth=1")
            page.click("#tab-samples")
            page.wait_for_selector("#panel-samples .rows tbody tr >> nth=15")
            assert page.locator("#panel-samples td").first.text_content().split()[0] in SPECIES
            if where == "server":
                assert serious_findings(page) == []
                drop(page, "row.csv", b"sex,length,species,mass,visits\nmale,44.5,Gentoo,,7\n")
                page.wait_for_selector("[data-mark=own]")
                assert shown_row(page, "#own-rows")["mass"] == "missing"
                has_count(page, "#own-rows thead th", 3)
                drop(page, "row.csv", b"sex,length,species,mass,visits\nmale,44.5,Emperor,,7\n")
                page.wait_for_function("() => document.querySelector('#message').textContent.includes('Emperor')")
            else:
                assert page.text_content("#decode-note") == ""  # the network itself


def test_columns_that_the_model_does_not_know_are_left_out(tmp_path):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(60, 2)).round(3).tolist()
    path = tmp_path / "x.csv"
    path.write_text("a,b,kind\n" + "".join(f"{a},{b},{'uv'[i % 2]}\n" for i, (a, b) in enumerate(numbers)))
    run = train(f"{path}:kinds=kind:label", tmp_path / "run")
    (model,) = open_models([run / "model"])
    assert choose_rows([model], str(path)).rows.x.shape == (60, 2)
    shown = choose_rows([model], f"{path}:labels=kind")
    assert shown.rows.factors["kind"].tolist() == ["u", "v"] * 30
