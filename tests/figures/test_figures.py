"""Figures: nothing is cut off or too small to read, every value lies where it belongs, files repeat byte for byte."""

from itertools import pairwise

import matplotlib
import numpy as np
import pandas as pd
import pytest
from docs.pages.figures import weight_sweeps
from matplotlib.text import Text

from wiseale.experiments.figures import Sandwich, SystemPoint, bound_sandwich, rate_distortion
from wiseale.figures.column_matrices import column_traversals, correlation_matrices
from wiseale.figures.columns import column_distributions, column_reconstructions
from wiseale.figures.decoded import (
    Traversal,
    contact_sheet,
    image_rows,
    manifold_grid,
    mosaic,
    reconstructions,
    traversals,
)
from wiseale.figures.factor import Factor
from wiseale.figures.latent_map import PlaneCodes, latent_map, posterior_contours
from wiseale.figures.model_pictures import training_curves
from wiseale.figures.style import line_style, new_figure, point_style, save_figure, wrapped
from wiseale.training.loop import EpochRecord

rng = np.random.default_rng(0)
IMAGES = rng.random((4, 3, 8, 8), np.float32)
SIGNALS = rng.normal(size=(4, 1, 40)).astype(np.float32)
LONG = ["WiSE-ALE, exact reconstruction", "$\\frac{", "a third system, in a row of its own", "AEVB"]


def for_all(value):
    """The same for some systems, with names that are long or hold what would start a formula."""
    return dict.fromkeys(LONG, value)


def epochs(n, *terms):
    return [EpochRecord(e + 1, e + 1, 1e-3, 1.0, dict.fromkeys(terms, 1.0 / (e + 1)), None) for e in range(n)]


MU = rng.normal(size=(30, 2)).astype(np.float32)
LABELS = np.arange(30) % 10
UNSEEN = np.arange(30) % 7 == 0
TABLE = rng.normal(size=(30, 5)) * [1, 1, 1, 0, 1000]
OFFSETS = TABLE[:, [0, 1, 2, 0, 1, 2]] + 1e6
COLUMNS = ("price", "$\\frac{", "od280/od315_of_diluted_wines", "constant", "proline")
LEVELS = ((), ("yes", "no"), ("$\\frac{", *(f"a long name of level {i}" for i in range(11))))
MIXED = np.stack([TABLE[:, 0], np.arange(30) % 2, np.arange(30) % 12], 1).astype(float)
MIXED[::4, 0] = MIXED[1::5, 1] = MIXED[2::6, 2] = np.nan
FIGURES = {
    "curves": lambda: training_curves(for_all([epochs(3, "reconstruction", "elbo"), epochs(2, "reconstruction")])),
    "image rows": lambda: image_rows(for_all(IMAGES)),
    "signal rows": lambda: image_rows(for_all(SIGNALS)),
    "image reconstructions": lambda: reconstructions(IMAGES, for_all(IMAGES)),
    "image reconstructions alone": lambda: reconstructions(IMAGES[:0], for_all(IMAGES)),
    "signal reconstructions": lambda: reconstructions(SIGNALS, for_all(SIGNALS)),
    "image traversals": lambda: traversals(for_all(Traversal(("z1", "z12"), np.stack([IMAGES, IMAGES])))),
    "signal traversals": lambda: traversals(for_all(Traversal(("z1", "z12"), np.stack([SIGNALS, SIGNALS])))),
    "image manifold": lambda: manifold_grid(for_all(IMAGES[None].repeat(4, 0))),
    "signal manifold": lambda: manifold_grid(for_all(SIGNALS[None].repeat(4, 0))),
    "posteriors": lambda: posterior_contours({**for_all((MU, 0.1 * np.abs(MU))), "points": (9 * MU, None)}),
    "class map": lambda: latent_map(for_all(PlaneCodes(MU, (0, 11), UNSEEN)), Factor("a $ign", LABELS)),
    "factor map": lambda: latent_map(for_all(PlaneCodes(MU, (0, 1), UNSEEN)), Factor("phase", np.arange(30.0), True)),
    "plain map": lambda: latent_map(for_all(PlaneCodes(MU, (0, 1), UNSEEN))),
    "histogram": lambda: latent_map(for_all(PlaneCodes(MU[:, :1], (0,))), Factor("kind", LABELS % 3)),
    "columns": lambda: column_reconstructions(TABLE, for_all(TABLE), COLUMNS, UNSEEN),
    "columns with offsets": lambda: column_reconstructions(OFFSETS, {"one": OFFSETS[::-1]}, (), UNSEEN),
    "distributions": lambda: column_distributions(TABLE, for_all(TABLE), COLUMNS),
    "mixed columns": lambda: column_reconstructions(MIXED, for_all(MIXED), COLUMNS[:3], UNSEEN, levels=LEVELS),
    "mixed distributions": lambda: column_distributions(MIXED, for_all(MIXED), COLUMNS[:3], levels=LEVELS),
    "correlations": lambda: correlation_matrices({"data": TABLE, **for_all(TABLE)}, COLUMNS),
    "table traversals": lambda: column_traversals(
        for_all(Traversal(("z1", "z12"), TABLE.reshape(2, 5, 3, 5)[:, :, 0])), TABLE.std(0), COLUMNS
    ),
    "plane": lambda: rate_distortion(
        {name: SystemPoint("f", (n, 100 - n), [(n, 99 - n), (n, 101 - n)]) for n, name in enumerate(LONG)}
    ),
    "weight sweeps": lambda: weight_sweeps(
        for_all({"ours": {"1/64": [(0.0, 9.0), (0.1, 8.0)], "1": [(20.0, 7.0)]}, "theirs": {"1": [(20.0, 7.0)]}})
    ),
    "sandwich": lambda: bound_sandwich(for_all(Sandwich(-0.2, 0.3, 0.1, 0.6, 0.5, 30.0))),
}


@pytest.mark.parametrize("name", FIGURES)
def test_text_is_inside_the_figure_and_legible(name):
    figure = FIGURES[name]()
    figure.draw_without_rendering()
    whole = figure.bbox.padded(1)
    ticks = {label for ax in figure.axes for axis in (ax.xaxis, ax.yaxis) for label in axis.get_ticklabels()}
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    assert len(set(texts) - ticks) >= len(LONG)
    for text in texts:
        assert text.get_fontsize() >= 7
        if text not in ticks:  # some of those are beyond the end of their axis and not drawn
            box = text.get_window_extent()
            assert whole.x0 <= box.x0 <= box.x1 <= whole.x1, text
            assert whole.y0 <= box.y0 <= box.y1 <= whole.y1, text


def test_panels_do_not_write_into_each_other():
    figure = FIGURES["image manifold"]()
    figure.draw_without_rendering()
    boxes = [ax.title.get_window_extent() for ax in figure.axes[:3]]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert wrapped("wise_ale:prior_weight=1,estimator=mc", 24) == "wise_ale:prior_weight=1,\nestimator=mc"


def test_56_styles_differ():
    for style in (line_style, point_style):
        assert len({style(n) for n in range(56)}) == 56
    assert [line_style(n)[0] for n in range(20)] == [point_style(n)[0] for n in range(20)]


def test_a_mosaic_has_every_image_in_its_place():
    images = rng.random((2, 3, 1, 4, 5)).astype(np.float32)
    whole = mosaic(images, gap=2)
    assert whole.shape == (2 * 4 + 2, 3 * 5 + 4, 3)
    for row, column in np.ndindex(2, 3):
        tile = whole[row * 6 : row * 6 + 4, column * 7 : column * 7 + 5]
        np.testing.assert_array_equal(tile, images[row, column].repeat(3, 0).transpose(1, 2, 0))
    assert (whole[4:6] == 1).all()


def test_the_manifold_has_small_codes_at_the_lower_left():
    grid = np.zeros((3, 3, 1, 2, 2), np.float32)
    grid[0, 0], grid[0, 2] = 1, 0.5
    picture = manifold_grid({"one": grid}).axes[0].get_images()[0].get_array()
    assert (picture[-2:, :2] == 1).all()
    assert (picture[-2:, -2:] == 0.5).all()
    assert picture.sum() == 3 * 4 * 1.5


def test_a_single_epoch_can_be_seen():
    (line,) = training_curves({"one": [epochs(1, "reconstruction")]}).axes[0].get_lines()
    assert line.get_marker() == "o"


def test_curves_are_means_as_far_as_all_runs_went():
    runs = [epochs(3, "reconstruction"), epochs(2, "reconstruction")]
    runs[1][0].train["reconstruction"] = 3.0
    (line,) = training_curves({"one": runs}).axes[0].get_lines()
    np.testing.assert_allclose(line.get_xydata(), [[1, 2.0], [2, 0.5]])


def test_signals_of_a_traversal_share_their_scale():
    loud = Traversal(("z1",), 9 * SIGNALS[None])
    limits = {ax.get_ylim() for ax in traversals({"quiet": Traversal(("z1",), SIGNALS[None]), "loud": loud}).axes}
    assert limits == {(9 * SIGNALS.min(), 9 * SIGNALS.max())}


def test_every_signal_of_an_overview_is_drawn():
    """Once a loop over the axes had used them up, and all of them stayed empty."""
    signals = rng.normal(size=(14, 2, 40)).astype(np.float32)
    shown = [ax for ax in contact_sheet(signals).axes if ax.axison]
    assert len(shown) == 12
    for ax, signal in zip(shown, signals, strict=False):
        np.testing.assert_array_equal([line.get_ydata() for line in ax.get_lines()], signal)


def test_images_of_any_range_are_shown_from_black_to_white():
    picture = contact_sheet(np.linspace(-5, 250, 64, dtype=np.float32).reshape(1, 1, 8, 8)).axes[0].get_images()[0]
    tile = picture.get_array()[:8, :8]
    assert tile.min() == 0
    assert tile.max() == 1
    assert len(np.unique(tile)) == 64


def test_unseen_rows_are_marked_on_the_map():
    figure = latent_map({"one": PlaneCodes(MU, (0, 1), UNSEEN)}, Factor("kind", LABELS % 2))
    marked = np.concatenate([np.asarray(points.get_offsets()) for points in figure.axes[0].collections])
    np.testing.assert_allclose(np.sort(marked, 0), np.sort(MU[UNSEEN], 0))
    assert "black edge: not learned from" in figure.legends[0].get_title().get_text()
    plain = latent_map({"one": PlaneCodes(MU, (0, 1), np.ones(30, bool))})  # all of them: nothing to mark
    assert not plain.legends
    assert len(np.concatenate([line.get_xydata() for line in plain.axes[0].get_lines()])) == 30


def test_many_words_are_classes_and_many_numbers_a_scale():
    words = Factor("name", np.array([f"w{i % 25}" for i in range(60)]))
    assert len(words.classes) == 20
    assert {f"w{i}" for i in range(10)} <= set(words.classes)  # those with three rows, not two
    assert Factor("size", np.arange(21)).classes == []


def test_every_row_is_on_the_map_whatever_its_label():
    """25 classes of which 20 are drawn, and rows without a label: the others are grey, and counted in the legend."""
    labels = np.array([None if i % 10 == 0 else f"w{i % 25}" for i in range(100)], object)
    codes = np.random.default_rng(0).normal(size=(100, 2))
    for unseen in (None, np.arange(100) % 3 == 0):
        figure = latent_map({"one": PlaneCodes(codes, (0, 1), unseen)}, Factor("name", labels))
        ax = figure.axes[0]
        lines = [line.get_xydata() for line in ax.get_lines()]
        drawn = np.concatenate([*lines, *(np.asarray(points.get_offsets()) for points in ax.collections)])
        np.testing.assert_allclose(np.sort(drawn, 0), np.sort(codes, 0))
        names = [text.get_text() for text in figure.legends[0].get_texts()]
        words, counts = np.unique(labels[labels != None], return_counts=True)  # noqa: E711
        assert len(names) == 22
        assert names[-2:] == [f"other ({np.sort(counts)[: len(words) - 20].sum()})", "missing (10)"]
    histogram = latent_map({"one": PlaneCodes(codes[:, :1], (0,))}, Factor("name", labels))
    assert [text.get_text() for text in histogram.legends[0].get_texts()][-1] == "missing (10)"


MANY_DAYS = np.datetime64("2024-01-01") + np.arange(40)


@pytest.mark.parametrize(
    "values",
    [
        MANY_DAYS,
        MANY_DAYS.astype("datetime64[ns]"),
        MANY_DAYS.astype(object),  # datetime.date
        MANY_DAYS.astype("datetime64[us]").astype(object),  # datetime.datetime
        MANY_DAYS.astype(str),
        pd.Series(MANY_DAYS).dt.tz_localize("UTC").to_numpy(),
    ],
)
def test_dates_are_on_a_scale_with_ticks_that_are_dates(values):
    factor = Factor("day", values)
    assert factor.classes == []
    assert factor.dates
    np.testing.assert_allclose(factor.numbers, 19_723 + np.arange(40))  # days from 1970-01-01 to 2024-01-01
    figure = latent_map({"one": PlaneCodes(np.random.default_rng(0).normal(size=(40, 2)), (0, 1))}, factor)
    figure.draw_without_rendering()
    ticks = [text.get_text() for text in figure.axes[-1].get_yticklabels()]
    assert any(text.startswith("2024-0") for text in ticks)
    assert Factor("day", np.tile(values[:3], 5)).classes == ["2024-01-01", "2024-01-02", "2024-01-03"]


@pytest.mark.parametrize(
    ("values", "missing", "numbers"),
    [
        ([None, *range(30)], [0], [np.nan, *range(30)]),
        ([*map(float, range(30)), np.nan], [30], [*range(30), np.nan]),
        (["", *map(str, range(30))], [0], [np.nan, *range(30)]),  # a file's column with a missing cell is text
        ([pd.NA, "a", float("nan"), pd.NaT, "b"], [0, 2, 3], None),
        (["none", "mild", "mild"], [], None),  # a word that a user gives is a word
        (["2020_01", *(f"2020_{i}" for i in range(30))], [], None),
        ([True, False, None], [2], None),
    ],
)
def test_missing_values_are_told_from_others(values, missing, numbers):
    array = np.array(values, object if any(not isinstance(value, str) for value in values) else str)
    factor = Factor("y", array)
    np.testing.assert_array_equal(np.flatnonzero(factor.missing), missing)
    if numbers is None:
        assert factor.numbers is None
    else:
        np.testing.assert_array_equal(factor.numbers, numbers)


def test_a_map_of_more_units_says_why_it_shows_two():
    figure = latent_map({"one": PlaneCodes(TABLE[:, 1:3], (1, 2), most_active_of=8)})
    assert "the two most active of 8 units" in " ".join(figure.axes[0].get_title().split())
    plain = latent_map({"one": PlaneCodes(TABLE[:, :2], (0, 1), most_active_of=2)})
    assert plain.axes[0].get_title() == "one"


def test_correlations_are_those_numpy_computes():
    matrix = correlation_matrices({"one": TABLE}).axes[0].get_images()[0].get_array()
    kept = [0, 1, 2, 4]
    np.testing.assert_allclose(matrix[np.ix_(kept, kept)], np.corrcoef(TABLE[:, kept].T), atol=1e-12)
    assert matrix.mask[3].all() if np.ma.is_masked(matrix) else np.isnan(matrix[3]).all()


def test_correlations_with_missing_cells_are_those_pandas_computes():
    holed = np.where(np.arange(TABLE.size).reshape(TABLE.shape) % 4 == 1, np.nan, TABLE)
    matrix = np.ma.filled(correlation_matrices({"one": holed}).axes[0].get_images()[0].get_array(), np.nan)
    np.testing.assert_allclose(matrix, pd.DataFrame(holed).corr(), atol=1e-12)


def test_bars_are_shares_of_the_observed_cells():
    drawn = np.where(np.isnan(MIXED), 1.0, MIXED)
    ax = column_distributions(MIXED, {"one": drawn}, levels=LEVELS).axes[1]
    heights = [[bar.get_height() for bar in bars] for bars in ax.containers]
    seen = MIXED[~np.isnan(MIXED[:, 1]), 1]
    np.testing.assert_allclose(heights, [[1 - seen.mean(), seen.mean()], [1 - drawn[:, 1].mean(), drawn[:, 1].mean()]])
    guessed = np.where(np.arange(30)[:, None] < 6, 1 - drawn, drawn)  # six rows are wrong
    panel = column_reconstructions(MIXED, {"one": guessed}, levels=LEVELS).axes[1]
    right = [np.mean((guessed[:, 1] == level)[MIXED[:, 1] == level]) for level in (0, 1)]
    np.testing.assert_allclose([bar.get_height() for bar in panel.containers[0]], right)
    shown = [label.get_text() for label in column_distributions(MIXED, {}, levels=LEVELS).axes[2].get_xticklabels()]
    assert len(shown) == 8  # the most frequent ones


def test_distributions_are_densities_of_the_standardised_columns():
    """Values beyond the range are counted at its ends, so each histogram has the area 1."""
    x = np.concatenate([TABLE[:, :1], [[900.0]]])
    shapes = [steps.get_data() for steps in column_distributions(x, {"one": x}).axes[0].patches]
    assert len(shapes) == 2
    for density, edges, _ in shapes:
        assert (density * np.diff(edges)).sum() == pytest.approx(1)
        assert density[-1] > 0


def test_columns_are_in_the_user_s_units_and_constant_ones_are_named():
    for figure in (column_reconstructions(TABLE, {"one": TABLE}), column_distributions(TABLE, {"one": TABLE})):
        figure.draw_without_rendering()
        assert [ax.get_title().split("\n")[0] for ax in figure.axes if ax.axison] == [
            *("column 1", "column 2", "column 3", "column 5")
        ]
        low, high = figure.axes[3].get_xlim()
        assert low <= TABLE[:, 4].min() < TABLE[:, 4].max() <= high < 10_000
        assert "Constant, not drawn: column 4" in figure.legends[0].get_title().get_text()
    wide = np.random.default_rng(0).normal(size=(9, 40))
    assert "The first 16 of 40 columns" in column_distributions(wide, {}).legends[0].get_title().get_text()
    same = column_reconstructions(np.ones((9, 2)), {"one": np.ones((9, 2))})
    assert [ax.get_title() for ax in same.axes] == ["column 1\nR² –", "column 2\nR² –"]


def test_every_scatter_is_labelled_and_measures_say_of_which_rows_they_are():
    """Two rows of panels: numbers above categories have their own label below."""
    n = 40
    x = np.column_stack([np.random.default_rng(0).normal(size=(n, 3)), *([np.arange(n) % 2] * 3)])
    x_hat = x.copy()
    held_out = np.arange(n) < 10
    x_hat[:5, 3], x_hat[:5, 0] = 1 - x[:5, 3], 3
    levels = [(), (), (), *([("no", "yes")] * 3)]
    figure = column_reconstructions(x, {"one": x_hat}, unseen=held_out, levels=levels)
    labels = [ax.get_xlabel() for ax in figure.axes]
    assert labels[:4] == ["observed", "observed", "observed", ""]
    title = figure.axes[3].get_title().split("\n")
    assert title[1:] == ["accuracy of all rows 88%", "held out 50%"]
    r2 = [
        1 - ((x - x_hat)[rows, 0] ** 2).sum() / ((x[rows, 0] - x[rows, 0].mean()) ** 2).sum()
        for rows in (..., held_out)
    ]
    shown = [f"{value:.2f}".replace("-", "−") for value in r2]
    assert figure.axes[0].get_title().split("\n")[1] == f"R² {shown[0]}, held out {shown[1]}"


def test_a_table_s_traversal_is_coloured_by_the_column_s_deviation():
    values = np.zeros((1, 3, 2))
    values[0, :, 0], values[0, :, 1] = [-1, 0, 3], [-1000, 0, 3000]
    figure = column_traversals({"one": Traversal(("z1",), values)}, np.array([1.0, 1000.0]))
    colours = figure.axes[0].get_images()[0].get_array()
    np.testing.assert_allclose(colours, [[-1, 0, 3], [-1, 0, 3]])
    assert {text.get_text() for text in figure.axes[0].texts} == {"−1", "+3", "−1000", "+3000"}


def saved(stem):
    save_figure(FIGURES["plane"](), stem)
    return stem.with_suffix(".svg").read_bytes(), stem.with_suffix(".png").read_bytes()


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    salt = matplotlib.rcParams["svg.hashsalt"]
    first = saved(tmp_path / "a")
    assert b"clip-path" in first[0]
    assert saved(tmp_path / "b") == first
    assert matplotlib.rcParams["svg.hashsalt"] == salt


def test_a_figure_is_laid_out_once(tmp_path, monkeypatch):
    figure = new_figure(3, 2)
    ax = figure.subplots()
    ax.set_ylabel("a label that takes room")
    engine = figure.get_layout_engine()
    calls = []
    execute = type(engine).execute
    monkeypatch.setattr(type(engine), "execute", lambda self, fig: calls.append(1) or execute(self, fig))
    save_figure(figure, tmp_path / "figure")
    assert len(calls) == 1
    assert ax.get_position().x0 > 0.15  # the layout stays as it was found
