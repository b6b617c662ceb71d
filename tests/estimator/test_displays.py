"""Displays of a fitted estimator: what they show is what the estimator returns, for tables, signals and images."""

import copy
import subprocess
import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

matplotlib.use("agg")
import matplotlib.pyplot as plt

import wiseale
from wiseale import AutoEncoder, LatentMapDisplay, ReconstructionDisplay, TraversalDisplay, load
from wiseale.figures.decoded import traversal_codes

RNG = np.random.default_rng(0)
DATA = {
    "table": RNG.normal(size=(60, 5)) * [1, 1, 1, 1, 1000] + 3,
    "signals": RNG.normal(size=(60, 2, 16)).astype(np.float32),
    "images": RNG.random((60, 3, 8, 8)).astype(np.float32),
    "uint8 images": RNG.integers(0, 256, (60, 1, 8, 8), np.uint8),
    "images beyond 0 to 1": 200 * RNG.random((60, 1, 8, 8)).astype(np.float32),
}
DISPLAYS = (LatentMapDisplay, ReconstructionDisplay, TraversalDisplay)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def fitted():
    made = {}

    def fit(kind, latent_dim=2, objective="wise_ale"):
        key = (kind, latent_dim, objective)
        if key not in made:
            est = AutoEncoder(objective, latent_dim, network="mlp:hidden=8", max_epochs=2, random_state=0)
            made[key] = est.fit(DATA[kind])
        return made[key]

    return fit


@pytest.mark.parametrize("display", DISPLAYS)
@pytest.mark.parametrize("kind", DATA)
def test_every_display_draws_every_kind_of_data_with_or_without_axes(fitted, display, kind):
    x, est = DATA[kind], fitted(kind)
    drawn = display.from_estimator(est, x, np.arange(60) % 3)
    drawn.figure_.draw_without_rendering()
    open_figures = plt.get_fignums()
    assert drawn.plot() is drawn
    assert plt.get_fignums() == open_figures  # already drawn: not again

    figure, (left, right) = plt.subplots(1, 2, figsize=(14, 5), layout="constrained")
    left.plot([0, 1])
    drawn.plot(right)
    figure.draw_without_rendering()
    assert drawn.figure_ is figure
    assert all(ax.get_window_extent().x0 > left.get_window_extent().x1 for ax in drawn.axes_)


@pytest.mark.parametrize("latent_dim", [1, 2, 4])
def test_the_map_shows_the_codes_in_the_units_that_vary_most(fitted, latent_dim):
    est = fitted("table", latent_dim)
    mu = est.transform(DATA["table"])
    shown = LatentMapDisplay.from_estimator(est, DATA["table"])
    widest = sorted(np.argsort(-mu.std(0))[:2])
    assert list(shown.units) == widest
    np.testing.assert_array_equal(shown.codes, mu[:, widest])
    assert shown.ax_.get_xlabel() == f"z{widest[0] + 1}"
    if latent_dim > 1:
        points = np.concatenate([line.get_xydata() for line in shown.ax_.get_lines()])
        np.testing.assert_allclose(np.sort(points, 0), np.sort(mu[:, widest], 0))


def test_the_map_s_legend_names_the_classes(fitted):
    y = pd.Series(np.array(["a $ign", "b", "c"])[np.arange(60) % 3])
    shown = LatentMapDisplay.from_estimator(fitted("table"), DATA["table"], y, factor_name="kind")
    (legend,) = shown.figure_.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a $ign", "b", "c"]
    assert legend.get_title().get_text() == "kind"
    named = LatentMapDisplay.from_estimator(fitted("table"), DATA["table"], y.rename("species"))
    assert named.figure_.legends[0].get_title().get_text() == "species"  # a column of a data frame


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_rows_without_a_label_are_drawn_and_counted(fitted, missing):
    y = pd.Series(np.array(["a", "b", "c"], object)[np.arange(60) % 3])
    y[::5] = missing
    shown = LatentMapDisplay.from_estimator(fitted("table"), DATA["table"], y)
    assert [text.get_text() for text in shown.figure_.legends[0].get_texts()] == ["a", "b", "c", "missing (12)"]
    assert len(np.concatenate([line.get_xydata() for line in shown.ax_.get_lines()])) == 60
    rows = ReconstructionDisplay.from_estimator(fitted("images"), DATA["images"], y, n_rows=4)  # spaced by label
    assert len(rows.x) == 4


def test_a_map_says_that_its_units_were_chosen(fitted):
    chosen = LatentMapDisplay.from_estimator(fitted("table", 4), DATA["table"])
    assert " ".join(chosen.ax_.get_title().split()) == "the two most active of 4 units"
    assert LatentMapDisplay.from_estimator(fitted("table", 4), DATA["table"], units=(0, 1)).ax_.get_title() == ""


def test_a_column_s_reconstruction_is_drawn_in_the_user_s_units(fitted):
    x, est = DATA["table"], fitted("table")
    shown = ReconstructionDisplay.from_estimator(est, x)
    x_hat = est.inverse_transform(est.transform(x))
    ax = shown.axes_[4]
    points = next(line.get_xydata() for line in ax.get_lines() if len(line.get_xydata()) == 60)
    np.testing.assert_array_equal(points[:, 0], x[:, 4])
    np.testing.assert_allclose(points[:, 1], x_hat[:, 4])
    r2 = 1 - ((x[:, 4] - x_hat[:, 4]) ** 2).mean() / x[:, 4].var()
    assert f"R² {r2:.2f}" in ax.get_title()


def test_images_are_reconstructed_as_they_are_returned(fitted):
    x, est = DATA["uint8 images"], fitted("uint8 images")
    shown = ReconstructionDisplay.from_estimator(est, x, n_rows=3)
    np.testing.assert_allclose(shown.x, x[[0, 29, 59]] / 255, rtol=1e-6)
    np.testing.assert_allclose(shown.x_hat, est.inverse_transform(est.transform(x[[0, 29, 59]])), rtol=1e-5)


@pytest.mark.parametrize("objective", ["wise_ale", "wae_mmd"])
def test_a_traversal_starts_from_the_row_s_code(fitted, objective):
    """At the step nearest the row's own value of the unit, the decoded row is nearest its reconstruction."""
    x, est = DATA["table"], fitted("table", 2, objective)
    shown = TraversalDisplay.from_estimator(est, x, row=7, steps=201)
    mu = est.transform(x)
    variance = mu.var(0) + (est.posterior(x)[1] ** 2).mean(0) if objective == "wise_ale" else mu.var(0)
    for unit in range(2):
        path = mu[:, unit].mean() + np.sqrt(variance[unit]) * np.linspace(-2, 2, 201)
        nearest = np.abs(path - mu[7, unit]).argmin()
        code = mu[7].copy()
        code[unit] = path[nearest]
        np.testing.assert_allclose(shown.values[unit, nearest], est.inverse_transform(code[None])[0], rtol=1e-9)


def test_a_table_s_traversal_writes_the_change_in_the_user_s_units(fitted):
    x, est = pd.DataFrame(DATA["table"], columns=list("abcde")), fitted("table")
    est = AutoEncoder(network="mlp:hidden=8", max_epochs=2, random_state=0).fit(x)
    shown = TraversalDisplay.from_estimator(est, x, steps=3)
    texts = [text.get_text() for text in shown.ax_.texts]
    change = shown.values[0, 2, 4] - shown.values[0, 1, 4]
    assert any(abs(float(text.replace("−", "-")) - change) <= 0.5 + abs(change) * 0.06 for text in texts)
    assert [label.get_text() for label in shown.ax_.get_yticklabels()] == list("abcde")


@pytest.fixture(scope="module")
def mixed():
    """A table with words, levels, truth values, a missing cell and a column that is not learned from, and its model."""
    u = RNG.normal(size=60)
    x = pd.DataFrame(
        {
            "id": [f"row {i}" for i in range(60)],
            "mass": 50 + 10 * u,
            "size": np.where(u < -0.5, "S", np.where(u < 0.5, "M", "L")),
            "sold": u > 0.3,
        }
    )
    x.loc[3, "mass"], x.loc[5, "size"] = np.nan, None
    settings = {"network": "mlp:hidden=8", "max_epochs": 20, "batch_size": 8, "lr": 0.01, "random_state": 0}
    return x, AutoEncoder("aevb", column_kinds={"id": "ignore"}, **settings).fit(x)


def test_a_table_with_words_is_reconstructed_level_by_level(mixed):
    x, est = mixed
    shown = ReconstructionDisplay.from_estimator(est, x)
    x_hat = est.inverse_transform(est.transform(x))
    known = x["size"].notna()
    accuracy = (x["size"] == x_hat["size"])[known].mean()
    mass = x["mass"].notna()
    r2 = 1 - ((x["mass"] - x_hat["mass"])[mass] ** 2).sum() / ((x["mass"] - x["mass"].mean())[mass] ** 2).sum()
    assert [ax.get_title() for ax in shown.axes_] == [
        f"mass\nR² {r2:.2f}",
        f"size\naccuracy {accuracy:.0%}",
        f"sold\naccuracy {(x['sold'] == x_hat['sold']).mean():.0%}",
    ]
    assert [label.get_text() for label in shown.axes_[1].get_xticklabels()] == ["L", "M", "S"]
    hits = [(x_hat["size"] == level)[x["size"] == level].mean() for level in "LMS"]
    np.testing.assert_allclose([bar.get_height() for bar in shown.axes_[1].patches], hits)


def test_a_traversal_of_a_table_with_words_shows_the_probabilities_of_levels(mixed):
    x, est = mixed
    shown = TraversalDisplay.from_estimator(est, x, row=3)
    assert shown.columns == ("mass", "size: L", "size: M", "size: S", "sold: True")
    np.testing.assert_allclose(shown.values[:, :, 1:4].sum(2), 1, rtol=1e-5)
    np.testing.assert_allclose(shown.deviation[0], x["mass"].std(ddof=0))
    np.testing.assert_allclose(shown.deviation[4], x["sold"].std(ddof=0))
    mu, sigma = est.posterior(x)
    codes = traversal_codes(mu, sigma, mu[3], shown.units, 5).reshape(-1, 2)
    decoded = est.inverse_transform(codes)
    np.testing.assert_allclose(shown.values[:, :, 0].ravel(), decoded["mass"], rtol=1e-5)
    assert list(np.array(list("LMS"))[shown.values[:, :, 1:4].argmax(2).ravel()]) == list(decoded["size"])
    assert len(set(decoded["size"])) > 1


@pytest.mark.parametrize("display", DISPLAYS)
def test_displays_of_an_estimator_that_answers_in_frames(mixed, display):
    x, est = mixed
    plain = pd.DataFrame(DATA["table"], columns=list("abcde")).assign(e=DATA["table"][:, 4] > 3)
    other = AutoEncoder(network="mlp:hidden=8", max_epochs=1, random_state=0).fit(plain)
    for table, fitted in ((x, copy.deepcopy(est)), (plain, other)):
        arrays = display.from_estimator(fitted, table).figure_
        frames = display.from_estimator(fitted.set_output(transform="pandas"), table).figure_
        assert np.array_equal(*(_pixels(figure) for figure in (arrays, frames)))


def _pixels(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def test_a_loaded_model_is_displayed_alike(fitted, tmp_path):
    est = fitted("table")
    est.save(tmp_path / "model")
    again = LatentMapDisplay.from_estimator(load(tmp_path / "model"), DATA["table"])
    np.testing.assert_array_equal(again.codes, LatentMapDisplay.from_estimator(est, DATA["table"]).codes)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda est, x: TraversalDisplay.from_estimator(est, x, row=60), "row must be from 0 to 59"),
        (lambda est, x: TraversalDisplay.from_estimator(est, x, steps=4), "steps must be odd"),
        (lambda est, x: LatentMapDisplay.from_estimator(est, x, units=(0, 2)), "units must be from 0 to 1, got 2"),
        (lambda est, x: LatentMapDisplay.from_estimator(est, x, np.zeros(3)), "inconsistent numbers of samples"),
        (lambda est, x: LatentMapDisplay.from_estimator(est, x, ax=plt.figure().add_axes((0, 0, 1, 1))), "subplots"),
    ],
)
def test_wrong_requests_are_refused_in_words(fitted, make, said):
    with pytest.raises(ValueError, match=said):
        make(fitted("table"), DATA["table"])


def test_the_package_imports_neither_torch_nor_matplotlib():
    code = "import sys, wiseale; print({'torch', 'matplotlib', 'numpy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
    code = "import sys; from wiseale import AutoEncoder; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
    assert set(wiseale.__all__) <= set(dir(wiseale))
