"""Which rows are shown, and what a session says of them."""

import io

import numpy as np
import pytest
from tests.explorer.conftest import open_session, train

from wiseale import AutoEncoder
from wiseale.data import load_dataset
from wiseale.data.dataset import Rows
from wiseale.errors import DataError, RunError
from wiseale.explorer.contours import principal_plane
from wiseale.explorer.opening import Opened, ShownRows, expand, open_models
from wiseale.explorer.session import make_session


def test_rows_are_those_held_out(monkeypatch, image_run):
    monkeypatch.setattr("wiseale.explorer.opening.FEWEST_UNSEEN", 60)
    shown = open_session(image_run).shown
    assert (shown.split, len(shown.rows), shown.available) == ("held out", 60, 60)
    assert shown.trained_on == (0,)
    assert shown.learned_from is None
    data = load_dataset(shown.data)
    assert (data.train.x[shown.numbers] == shown.rows.x).all()


def test_where_few_rows_are_held_out_all_are_shown_and_told_apart(monkeypatch, image_run, image_session):
    shown = image_session.shown
    assert (shown.split, len(shown.rows), shown.trained_on) == ("all rows", 600, (540,))
    monkeypatch.setattr("wiseale.explorer.opening.FEWEST_UNSEEN", 60)
    held_out = open_session(image_run).shown.numbers
    assert (np.flatnonzero(~shown.learned_from) == held_out).all()
    last = image_session.colourings[-1]
    assert (last.name, last.classes, last.values.sum()) == ("training", ("held out", "learned from"), 540)


def test_rows_that_another_run_was_trained_on_are_counted(monkeypatch, folder, image_data, image_run):
    monkeypatch.setattr("wiseale.explorer.opening.FEWEST_UNSEEN", 60)
    other = train(image_data, folder / "another-seed", "--latent-dim", "2", "--network", "mlp", "--seed", "5")
    first, second = open_session(image_run, other).shown.trained_on
    assert first == 0
    assert 40 < second < 60  # its own 60 held-out rows of 600 hardly meet those of the first


def test_a_part_of_many_rows_keeps_its_numbers(image_run, image_data):
    shown = open_session(image_run, data=image_data, most=50).shown
    assert (shown.available, len(shown.rows), shown.split) == (600, 50, "all rows")
    assert (np.diff(shown.numbers) > 0).all()
    assert shown.numbers.max() > 300  # not only the beginning of the file


def test_a_model_without_its_run_needs_data(image_run, image_data):
    with pytest.raises(DataError, match="--data"):
        open_session(image_run / "model")
    assert len(open_session(image_run / "model", data=image_data).shown.rows) == 600


def test_models_of_different_shapes_and_a_run_given_twice_are_refused(image_run, table_run):
    with pytest.raises(DataError, match="different shapes"):
        open_models([image_run, table_run])
    with pytest.raises(RunError, match="twice"):
        open_models([image_run, image_run])
    with pytest.raises(RunError, match="at most 4"):
        expand([image_run] * 5)


def test_codes_decode_to_what_the_model_gives_in_the_users_units(table_run):
    run = open_session(table_run).runs[0]
    z = np.array([[0.3, -0.7], [1, 1]], np.float32)
    decoded = run.decode(z)
    assert np.allclose(decoded, run.codec.decode(z), rtol=1e-6)
    assert (decoded[:, 1] > 100).all()  # quantities, not standardised numbers


def test_principal_components_are_those_of_the_singular_value_decomposition():
    draws = np.random.default_rng(0)
    mu = (draws.normal(size=(500, 5)) * (3, 1, 0.2, 2, 0.1) + 7).astype(np.float32)
    plane = principal_plane(mu)
    _, singular, rows = np.linalg.svd(mu - mu.mean(axis=0), full_matrices=False)
    assert np.allclose(np.abs(plane.directions @ rows[:2].T), np.eye(2), atol=1e-4)
    assert np.allclose(plane.shares, (singular**2 / (singular**2).sum())[:2], atol=1e-4)
    assert np.allclose(plane.directions @ plane.directions.T, np.eye(2), atol=1e-12)


def test_colours_come_from_labels_and_columns(image_session, table_run):
    quarter, _ = image_session.colourings
    assert (quarter.name, quarter.classes) == ("quarter", ("0", "1", "2", "3"))
    assert (quarter.values == image_session.shown.rows.factors["quarter"]).all()
    table = open_session(table_run)
    assert [one.name for one in table.colourings] == ["region", "price", "quantity", "training"]
    assert np.allclose(table.colourings[2].values, table.shown.rows.x[:, 1])


def test_labels_may_be_missing_and_dates_are_a_scale():
    x = np.random.default_rng(0).normal(size=(60, 3))
    est = AutoEncoder(network="mlp:hidden=8", max_epochs=1, random_state=0).fit(x)
    days = np.datetime64("2024-01-01") + np.arange(60)
    labels = {"kind": np.array([None, "b", "a"] * 20, object), "day": days}
    rows = ShownRows(Rows(x, factors=labels), "all rows", np.arange(60), 60, data="X")
    kind, day, *_ = make_session([Opened("one", est._codec, None)], rows).colourings
    assert kind.classes == ("a", "b")
    np.testing.assert_array_equal(kind.values[:3], [np.nan, 1, 0])
    assert day.dates
    np.testing.assert_array_equal(day.values, (days - np.datetime64(0, "D")).astype(float))


@pytest.mark.parametrize("header", ["price,quantity\n", "quantity,price\n", ""])
def test_own_table_rows_are_found_by_name_or_by_place(table_run, header):
    run = open_session(table_run).runs[0]
    row = "190,44.5" if header.startswith("quantity") else "44.5,190"
    own = run.own_rows(f"{header}{row}\n".encode(), "csv")
    assert np.allclose(own.x, [[44.5, 190]])
    assert np.allclose(own.codes.mu, run.codec.encode(np.array([[44.5, 190.0]])).mu)
    assert np.allclose(own.x_hat, run.codec.decode(own.codes.mu), rtol=1e-5)


def test_many_own_rows_are_counted_but_only_some_shown(image_session):
    file = io.BytesIO()
    np.save(file, np.zeros((50, 1, 12, 12), np.uint8))
    own = image_session.runs[0].own_rows(file.getvalue(), "npy")
    assert (len(own.x), own.available) == (32, 50)


UNREADABLE = [
    *((b"", "npy", "empty"), (b"abc", "npy", "numpy.save"), (b"\x89PNG broken", "png", "not an image")),
    *((b"1,2,3\n", "csv", "drop an .npy"), (b"x", "docx", "cannot read .docx")),
]


@pytest.mark.parametrize(("content", "suffix", "word"), UNREADABLE)
def test_own_rows_that_cannot_be_read_are_refused_in_words(image_session, content, suffix, word):
    with pytest.raises(DataError, match=word):
        image_session.runs[0].own_rows(content, suffix)


def test_an_own_array_of_another_shape_is_refused(image_session):
    file = io.BytesIO()
    np.save(file, np.zeros((2, 1, 9, 9)))
    with pytest.raises(DataError, match=r"\(2, 1, 9, 9\)"):
        image_session.runs[0].own_rows(file.getvalue(), "npy")


def test_thumbnails_of_small_images_are_the_images(image_session):
    thumbnails = image_session.thumbnails()
    assert thumbnails.shape == (600, 1, 12, 12)
    assert np.abs(thumbnails.astype(int) - image_session.shown.rows.x[image_session.thumbnail_rows]).max() <= 1
