"""Where each rule about the kind of a column ends: a column on either side of every threshold."""

import numpy as np
import pytest
from scipy import stats

from wiseale.data.source import load_path
from wiseale.errors import DataError

DRAWS = np.random.default_rng(0)


def column_of(folder, cells, settings=""):
    """The column made of these cells, beside one of numbers and one of words; or why it is not learned from."""
    rows = [
        f"{number:.3f},{word},{cell}"
        for number, word, cell in zip(DRAWS.normal(size=len(cells)), words(2, len(cells)), cells, strict=True)
    ]
    (folder / "x.csv").write_text("\n".join(["a,w,c", *rows]) + "\n", encoding="utf-8")
    space = load_path(f"{folder}/x.csv{settings}").space
    return next((column for column in space.columns if column.name == "c"), None) or dict(space.ignored)["c"]


def kind_of(folder, cells, settings=""):
    """The column's kind, or None where it is not learned from."""
    return getattr(column_of(folder, cells, settings), "kind", None)


def words(levels, rows):
    return [f"level {i % levels}" for i in range(rows)]


@pytest.mark.parametrize(
    ("levels", "rows", "kind"),
    [
        (256, 1200, "category"),
        (257, 1200, None),
        (30, 60, "category"),  # half as many levels as rows
        (31, 60, None),
        (20, 22, "category"),  # however few the rows are
        (21, 22, None),
    ],
)
def test_words_are_a_category_if_they_are_few(tmp_path, levels, rows, kind):
    assert kind_of(tmp_path, words(levels, rows)) == kind


def test_a_category_that_was_asked_for_has_a_thousand_levels_at_most(tmp_path):
    column = column_of(tmp_path, words(1000, 1100), ":kinds=c:category")
    assert (column.kind, len(column.levels)) == ("category", 1000)
    with pytest.raises(DataError, match=r'"c".*1,000.*c:ignore'):
        column_of(tmp_path, words(1001, 1100), ":kinds=c:category")


def test_levels_of_five_rows_are_kept_and_of_four_are_other(tmp_path):
    cells = ["often"] * 30 + ["five"] * 5 + ["four"] * 4 + ["once"]
    assert column_of(tmp_path, cells, ":unseen=other").levels == ("five", "often", "other")
    assert column_of(tmp_path, cells).levels == ("five", "four", "often", "once")  # where it is not asked for


def test_one_level_and_others_are_left_as_they_are(tmp_path):
    assert column_of(tmp_path, ["often"] * 30 + ["x"] * 4 + ["y"] * 4, ":unseen=other").levels == ("often", "x", "y")


def counts(high, times, rows=60, low=0):
    return [high] * times + [low] * (rows - times)


@pytest.mark.parametrize(
    ("cells", "is_count"),
    [
        (counts(1000, 1), True),
        (counts(1001, 1), False),
        (counts(3, 1), True),
        (counts(2, 1), False),
        (counts(9, 19), True),  # a mean of 2.85, less than a third of the largest
        (counts(9, 20), False),
        (counts(1000, 1, low=1), False),  # nobody was seen without any
        ([*counts(9, 5)[:-1], 0.5], False),
    ],
)
def test_whole_numbers_from_0_are_counts_if_most_are_small(tmp_path, cells, is_count):
    assert kind_of(tmp_path, cells) in (("poisson", "negative_binomial") if is_count else ("number",))


def test_counts_are_negative_binomial_where_rows_not_fitted_on_say_so(tmp_path):
    quantiles = np.repeat((np.arange(300) + 0.5) / 300, 2)  # the same cells in the even rows and in the odd ones
    assert kind_of(tmp_path, stats.poisson(3).ppf(quantiles).astype(int)) == "poisson"
    four_times_the_mean = stats.nbinom(1, 0.25).ppf(quantiles).astype(int)
    assert kind_of(tmp_path, four_times_the_mean) == "negative_binomial"
    fitted, judged = [0] * 9 + [30], [3] * 10
    assert kind_of(tmp_path, np.array([fitted, judged]).T.ravel().tolist() * 10) == "poisson"


@pytest.mark.parametrize(("dates", "reason"), [(91, "dates"), (90, "an identifier or free text")])
def test_a_column_is_of_dates_if_nine_tenths_of_its_words_are(tmp_path, dates, reason):
    cells = [f"20{i:02}-01-05" for i in range(dates)] + [f"word {i}" for i in range(100 - dates)]
    assert column_of(tmp_path, cells) == reason


@pytest.mark.parametrize(("rows", "kind"), [(20, "number"), (21, None)])
def test_up_to_twenty_rows_may_count_up_by_chance(tmp_path, rows, kind):
    assert kind_of(tmp_path, range(rows)) == kind
