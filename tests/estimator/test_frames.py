"""Data frames with words and missing cells: learned without preparation, answered in the same terms."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from tests.cli.commands import run

from wiseale import AutoEncoder, load
from wiseale.data.source import load_path
from wiseale.errors import IgnoredColumnsWarning

pytestmark = pytest.mark.filterwarnings("ignore::wiseale.errors.IgnoredColumnsWarning")
RNG = np.random.default_rng(3)
N = 80


def frame(holes=True):
    """A table in which everything follows from one number, so that a hole can be filled from the rest."""
    u = RNG.normal(size=N)
    made = pd.DataFrame(
        {
            "id": [f"row {i}" for i in range(N)],
            "mass": 50 + 10 * u + RNG.normal(size=N),
            "age": np.round(30 + 5 * u).astype("int64"),
            "size": pd.Categorical(np.where(u < -0.5, "S", np.where(u < 0.5, "M", "L")), ["S", "M", "L"], ordered=True),
            "colour": np.where(u > 0, "red", "blue"),
            "visits": RNG.poisson(np.exp(0.5 * u)),
            "sold": u > 0.3,
            "when": pd.date_range("2020-01-01", periods=N, tz="Europe/Paris"),
        },
        index=[f"r{i}" for i in range(N)],
    )
    if holes:
        made.loc[made.index[::7], "mass"] = np.nan
        made.loc[made.index[3::9], "colour"] = None
    return made


X = frame()


def quick(**settings):
    given = {"max_epochs": 3, "network": "mlp:hidden=16", "random_state": 0, "device": "cpu", "batch_size": 16}
    return AutoEncoder(**{**given, **settings})


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(X)


def test_kinds_are_decided_and_said(fitted):
    said = repr(fitted)
    for part in ("2 numbers (mass, age)", "1 category (size: 3 levels)", "2 binary columns (colour, sold)"):
        assert part in said
    for part in ("1 count (visits)", "id (an identifier or free text)", "when (dates)", "21 missing cells"):
        assert part in said
    assert fitted.x_shape_ == (6,)
    assert fitted.transform(X).shape == (N, 2)
    assert np.isfinite(fitted.score_samples(X)).all()


def test_columns_that_are_left_out_are_warned_of():
    table = X[["id", "mass", "when"]]
    said = r"columns not learned from: id \(an identifier or free text\); when \(dates\); to learn from one, say"
    with pytest.warns(IgnoredColumnsWarning, match=said):
        quick().fit(table)
    with pytest.warns(IgnoredColumnsWarning, match=r'\bwhen \(dates\).*"when"'):
        quick(column_kinds={"id": "ignore"}).fit(table)
    numbers = pd.DataFrame({"n": range(N), "mass": RNG.normal(size=N), "year": range(1900, 1900 + N)})
    with pytest.warns(IgnoredColumnsWarning, match=r'\bn \(row numbers\).*{"n": "number"}.*{"n": "ignore"}'):
        est = quick().fit(numbers)
    assert "2 columns; ignored: n (row numbers)" in repr(est)
    np.testing.assert_array_equal(est.transform(numbers), est.transform(numbers[["mass", "year"]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert quick(column_kinds={"id": "ignore", "when": "ignore"}).fit(table).x_shape_ == (1,)
        assert quick(column_kinds={"n": "number"}).fit(numbers).x_shape_ == (3,)
        assert quick(column_kinds={"n": "ignore"}).fit(numbers).x_shape_ == (2,)
        assert quick().fit(numbers.to_numpy()).x_shape_ == (3,)


def test_answers_are_frames_of_the_same_columns_types_and_categories(fitted):
    learned = X.drop(columns=["id", "when"])
    for answer in (fitted.inverse_transform(fitted.transform(X)), fitted.sample(7), fitted.sample(7, noise=True)):
        assert list(answer.columns) == list(learned.columns)
        assert answer.dtypes.to_dict() == learned.dtypes.to_dict()
        assert not answer.isna().any().any()
        assert set(answer["colour"]) <= {"red", "blue"}


@pytest.mark.parametrize("columns", [["mass", "age"], ["mass", "age", "colour"]])
def test_reconstructions_keep_the_index_of_the_codes(columns):
    table = frame(holes=False)[columns].set_axis(range(100, 100 + N))
    est = quick().fit(table).set_output(transform="pandas")
    answer = est.inverse_transform(est.transform(table))
    assert list(answer.index) == list(table.index)
    expected = table["mass"].to_numpy() - answer["mass"].to_numpy()
    np.testing.assert_array_equal((table[["mass"]] - answer[["mass"]])["mass"], expected)


def test_impute_fills_the_holes_and_nothing_else(fitted):
    filled = fitted.impute(X)
    assert not filled.drop(columns="when").isna().any().any()
    pd.testing.assert_frame_equal(filled.where(X.notna()), X.where(X.notna()))
    assert filled.dtypes.to_dict() == X.dtypes.to_dict()
    drawn = fitted.impute(X, n_draws=3)
    assert len(drawn) == 3
    hole = X["mass"].isna()
    assert drawn[0].loc[hole, "mass"].std() > 0
    assert not np.array_equal(drawn[0].loc[hole, "mass"], drawn[1].loc[hole, "mass"])
    with pytest.raises(ValueError, match="n_draws must be at least 1"):
        fitted.impute(X, n_draws=0)


def test_imputed_cells_are_better_than_the_columns_mean():
    whole = frame(holes=False)
    holed = whole.copy()
    hidden = np.arange(N) % 3 == 0
    holed.loc[hidden, "mass"] = np.nan
    filled = quick(max_epochs=40, objective="aevb").fit(holed).impute(holed)
    error = np.sqrt(((filled["mass"] - whole["mass"])[hidden] ** 2).mean())
    baseline = np.sqrt(((holed["mass"].mean() - whole["mass"])[hidden] ** 2).mean())
    assert error < 0.6 * baseline


@pytest.mark.parametrize("convert", [pl.from_pandas, lambda x: pa.Table.from_pandas(x, preserve_index=False)])
def test_other_frames_give_the_same_codes_and_their_own_kind_back(fitted, convert):
    other = convert(X.drop(columns="size"))
    est = quick().fit(other)
    np.testing.assert_array_equal(est.transform(other), quick().fit(X.drop(columns="size")).transform(X))
    answer = est.sample(5)
    assert type(answer) is type(other)
    names = answer.column_names if isinstance(answer, pa.Table) else answer.columns
    assert list(names) == ["mass", "age", "colour", "visits", "sold"]
    filled = est.impute(other)
    assert type(filled) is type(other)


class Exported:
    """A table of a library that nobody here knows: its columns, and Arrow's capsule."""

    def __init__(self, table):
        self.columns, self.__arrow_c_stream__ = table.column_names, table.__arrow_c_stream__


def test_tables_that_export_arrow_are_arrow_tables():
    table = pa.Table.from_pandas(X.drop(columns="size"), preserve_index=False)
    est = quick().fit(Exported(table))
    np.testing.assert_array_equal(est.transform(Exported(table)), quick().fit(table).transform(table))
    assert isinstance(est.impute(Exported(table)), pa.Table)


def test_masked_cells_are_missing():
    x = RNG.normal(size=(N, 3))
    masked = np.ma.masked_array(x, RNG.random((N, 3)) < 0.2)
    holes = masked.filled(np.nan)
    np.testing.assert_array_equal(quick().fit(masked).transform(masked), quick().fit(holes).transform(holes))
    whole = np.ma.masked_array(x)
    np.testing.assert_array_equal(quick().fit(whole).transform(whole), quick().fit(x).transform(x))


def test_a_file_leads_to_the_same_model(tmp_path, capsys):
    read = X.astype({"size": str, "sold": str}).drop(columns=["id", "when"])
    read.to_csv(tmp_path / "x.csv", index=False)
    settings = ("--latent-dim", 2, "--max-epochs", 3, "--network", "mlp:hidden=16", "--batch-size", 16, "--threads", 1)
    code, _, errors = run(capsys, "train", tmp_path / "x.csv", *settings, "--out", tmp_path / "run")
    assert code == 0, errors
    left, right = quick().fit(read).model_.state_dict(), load(tmp_path / "run").model_.state_dict()
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].numpy().tobytes() == right[name].numpy().tobytes(), name


def test_numbers_alone_give_the_plain_model_to_the_bit():
    numbers = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.integers(0, 9, N), "c": RNG.random(N) < 0.5})
    plain, framed = quick().fit(numbers.to_numpy(float)), quick().fit(numbers)
    assert framed.likelihood_.startswith("gaussian")
    left, right = plain.model_.state_dict(), framed.model_.state_dict()
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].numpy().tobytes() == right[name].numpy().tobytes(), name
    assert framed.sample(3).dtypes.to_dict() == numbers.dtypes.to_dict()


def test_errors_by_column(fitted):
    errors = fitted.reconstruction_error(X, per_column=True)
    assert list(errors.columns) == ["mass", "age", "size", "colour", "visits", "sold"]
    np.testing.assert_array_equal(errors.isna(), X[errors.columns].isna())
    np.testing.assert_allclose(errors.mean(axis=1), fitted.reconstruction_error(X))


def test_saved_and_loaded(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    back = load(tmp_path / "model")
    np.testing.assert_array_equal(back.transform(X), fitted.transform(X))
    pd.testing.assert_frame_equal(back.sample(4, random_state=1), fitted.sample(4, random_state=1))
    pd.testing.assert_frame_equal(back.impute(X), fitted.impute(X))


@pytest.mark.parametrize("kinds", [None, {"visits": "number", "age": "ignore", "sold": "category"}])
def test_a_clone_of_a_loaded_model_learns_from_the_same_columns(tmp_path, kinds):
    est = quick(column_kinds=kinds, standardize="none" if kinds else "auto").fit(X)
    est.save(tmp_path / "model")
    back = load(tmp_path / "model")
    assert back.n_features_in_ == est.n_features_in_ == 8
    assert sorted(back.feature_names_in_) == sorted(est.feature_names_in_)
    asked = {"max_epochs": 3, "batch_size": 16, "random_state": 0, "device": "cpu"}
    again = clone(back).set_params(**asked).fit(X)
    assert again.likelihood_ == est.likelihood_
    np.testing.assert_array_equal(again.transform(X), est.transform(X))
    numbers = quick(column_kinds={"age": "ignore"}).fit(frame(holes=False)[["mass", "age", "sold"]])
    numbers.save(tmp_path / "numbers")
    assert load(tmp_path / "numbers").column_kinds == {"age": "ignore"}
    assert load(tmp_path / "numbers").n_features_in_ == numbers.n_features_in_


def test_a_run_knows_that_it_refused_missing_cells(tmp_path, capsys):
    frame(holes=False)[["mass", "colour"]].to_csv(tmp_path / "x.csv", index=False)
    for missing in ("error", "learn"):
        settings = (
            "--missing",
            missing,
            "--max-epochs",
            1,
            "--network",
            "mlp:hidden=8",
            "--threads",
            1,
            "--no-figures",
        )
        code, _, errors = run(capsys, "train", tmp_path / "x.csv", *settings, "--out", tmp_path / missing)
        assert code == 0, errors
        assert load(tmp_path / missing).missing == missing


def test_matrices_with_nan(tmp_path):
    x = np.c_[RNG.normal(size=(N, 3)), RNG.integers(0, 2, N)]
    x[::5, 1] = np.nan
    est = quick().fit(x)
    filled = est.impute(x)
    assert isinstance(filled, np.ndarray)
    np.testing.assert_array_equal(filled[~np.isnan(x)], x[~np.isnan(x)])
    assert not np.isnan(filled).any()
    np.save(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(load_path(f"{tmp_path}/x.npy").train.x, x)


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.DataFrame, lambda x: pa.table(list(x.T), names=list("abcd"))])
def test_a_model_of_an_array_takes_the_columns_of_a_frame_by_position(convert, tmp_path):
    x = np.c_[RNG.normal(size=(N, 3)), RNG.integers(0, 2, N)]
    x[::5, 1] = np.nan
    quick().fit(x).save(tmp_path / "model")
    for est in (quick().fit(x), load(tmp_path / "model")):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X has feature names")
            np.testing.assert_array_equal(est.transform(convert(x)), est.transform(x))
            np.testing.assert_array_equal(np.asarray(est.impute(convert(x))), est.impute(x))
            errors = est.reconstruction_error(convert(x), per_column=True)
            np.testing.assert_array_equal(np.asarray(errors), est.reconstruction_error(x, per_column=True))
    wider = pd.DataFrame(np.c_[RNG.normal(size=N), x])  # columns 0, 1, 2, 3, 4
    for wrong in (wider, wider.astype(object).to_numpy(), wider[[1, 2, 3]]):
        with pytest.raises(ValueError, match=r"X has [35] features, but AutoEncoder is expecting 4 features"):
            est.transform(wrong)


def test_columns_of_a_frame_may_be_called_by_numbers():
    x = RNG.normal(size=(N, 3))
    x[::5, 1] = np.nan
    est = quick(column_kinds={"2": "ignore"}).fit(pd.DataFrame(x))  # the first is called 0
    filled = est.impute(pd.DataFrame(x)[[2, 1, 0]])
    assert list(filled.columns) == [2, 1, 0]
    assert not filled.isna().any().any()
    plain = quick(column_kinds={"1": "ignore"}).fit(pd.DataFrame(x))
    assert plain.transform(pd.DataFrame(x)).shape == (N, 2)


def test_levels_that_training_did_not_see(fitted):
    other = X.assign(colour="purple")
    with pytest.raises(ValueError, match=r"'purple'.*\"colour\""):
        fitted.transform(other)
    known = quick(unseen="missing").fit(X)
    np.testing.assert_array_equal(known.transform(other), known.transform(X.assign(colour=None)))


def test_rare_and_unseen_levels_as_other(tmp_path):
    shades = ["red"] * 30 + ["blue"] * 30 + ["green"] * 4 + ["grey"] * 4 + ["Other"] * 12
    kinds = pd.Categorical(["a", "b"] * 38 + ["c", "d"] * 2, ["a", "b", "c", "d", "never"])
    table = X.assign(shade=shades, kind=kinds)
    est = quick(unseen="other").fit(table)
    columns = {column.name: column for column in est._codec.space.columns}
    assert columns["shade"].levels == ("blue", "red", "Other")  # a level of that name is the one
    assert columns["kind"].levels == ("a", "b", "other")
    assert columns["size"].levels == ("S", "M", "L")  # none of them is rare
    purple, grey = (est.transform(table.assign(shade=shade)) for shade in ("purple", "grey"))
    np.testing.assert_array_equal(purple, grey)
    np.testing.assert_array_equal(purple, est.transform(table.assign(shade="Other")))
    unknown = est.transform(table.assign(size="XXL"))
    np.testing.assert_array_equal(unknown, est.transform(table.assign(size=None)))
    assert set(est.sample(40, noise=True)["shade"]) <= {"blue", "red", "Other"}
    assert set(est.impute(table)["shade"]) == set(shades)  # observed cells stay as they are
    est.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").transform(table.assign(size="XXL")), unknown)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"colour": [f"level {i}" for i in range(10_000)]},
            'more than 1,000 levels: say column_kinds={"colour": "ignore"}, or',
        ),
        ({"mass": np.nan}, 'column "mass" is empty, all .* cells are missing: say column_kinds={"mass": "ignore"}$'),
        ({"colour": [1, "a"] * 5_000}, 'also holds numbers: correct it, or say column_kinds={"colour": "category"} or'),
        ({"colour": ["1,5", "2,5"] * 5_000}, "has '1,5' in column \"colour\": turn it into a number if it is one"),
        ({"mass": [[1, 2]] * 10_000}, 'column "mass" holds nested values'),
        ({"mass": 1e39}, "beyond float32"),
        ({"mass": 1j}, "complex numbers"),
    ],
)
def test_tables_that_cannot_be_used_are_one_line(change, message):
    big = pd.concat([X] * 125, ignore_index=True).assign(**change)
    with pytest.raises(ValueError, match=message) as caught:
        quick(column_kinds={"colour": "category"} if "levels" in message else None).fit(big)
    assert "\n" not in str(caught.value)


def test_requests_that_cannot_be_met_are_one_line(fitted):
    for settings, data, message in (
        ({"column_kinds": {"when": "number"}}, X, 'column "when" holds dates, not a number'),
        ({"column_kinds": {"mas": "number"}}, X, 'X has no column "mas" to be number: did you mean'),
        ({"column_kinds": {"a": "number"}}, np.ones((9, 2)), "X has no names"),
        ({"column_kinds": {"mass": "count"}}, X, 'that are no counts: say column_kinds={"mass": "number"}'),
        (
            {},
            np.c_[X["mass"], [np.nan] * N],
            r"column 2 of X \(counted from 1\) is empty, all 80 cells .*: leave it out$",
        ),
        ({"missing": "error"}, X, 'has a missing cell in column "mass"'),
        ({"missing": "drop"}, X, "missing must be"),
        ({"likelihood": "gaussian"}, X, "cannot be that of columns with kinds"),
        ({}, X.set_axis([*X.columns[:-1], "mass"], axis=1), 'several columns named "mass"'),
    ):
        with pytest.raises(ValueError, match=message):
            quick(**settings).fit(data)
    with pytest.raises(ValueError, match='"mass"'):
        fitted.transform(X.drop(columns="mass"))


@pytest.mark.parametrize("words", [False, True])
def test_an_infinite_cell_is_named_alike_in_all_frames(words):
    table = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N)} | ({"c": ["x", "y"] * 40} if words else {}))
    est = quick().fit(table)
    for value, shown in ((np.inf, "inf"), (-np.inf, "-inf"), (1e39, r"1e\+39, beyond float32,")):
        holed = table.copy()
        holed.loc[6, "b"] = value
        said = rf'row 7 of X \(counted from 1\) has {shown} in column "b": fill,? .*; wiseale does not guess$'
        with pytest.raises(ValueError, match=said):
            quick().fit(holed)
        if np.isinf(value) or words:
            with pytest.raises(ValueError, match=said):
                est.transform(holed)
    with pytest.raises(ValueError, match=r"row 1 .*counted from 1.* inf .*column 2"):
        quick().fit(np.array([[1, np.inf], [2, 3]]))
    with pytest.raises(ValueError, match=r"row 2 of X \(counted from 1\) has inf: fill"):
        quick().fit(np.array([[[1, 2.0]], [[2, np.inf]]]))


def test_what_is_no_table_is_one_line_that_says_what_to_do(fitted, tmp_path):
    for given, said in (
        ("x.csv", r'X is the name of a file: read it first, for example by pandas.read_csv\("x.csv"\)'),
        (tmp_path / "x.parquet", r"for example by pandas.read_parquet\("),
        ("x.npy", r'for example by numpy.load\("x.npy"\)'),
        (None, "X is None: give an array or a data frame"),
    ):
        for call in (quick().fit, fitted.transform, fitted.impute, fitted.score):
            with pytest.raises(ValueError, match=said):
                call(given)
    words = X[["mass", "colour"]]
    for wrong in (words.to_numpy(), [["a", "1"], ["b", "2"]]):
        with pytest.raises(ValueError, match=r"array with words.*data frame"):
            quick().fit(wrong)
    assert quick().fit(np.array([["1", "2.5"], ["3", "4"]] * 9, object)).x_shape_ == (2,)
    for n in (2.5, "3", 0, None):
        with pytest.raises(ValueError, match="n_samples must be a whole number of at least 1, got"):
            fitted.sample(n)
    assert len(fitted.sample(np.int64(3))) == 3


def test_a_number_that_is_no_count_is_refused_with_advice_that_can_be_followed(fitted):
    with pytest.raises(ValueError, match=r'count.*column_kinds={"visits": "number"}'):
        fitted.transform(X.assign(visits=0.5))
    counts = np.c_[RNG.normal(size=N), np.r_[[0, 9, np.nan], RNG.integers(0, 3, N - 3)]]
    with pytest.raises(ValueError, match=r"count.*names the column"):
        quick().fit(counts).transform(counts + 0.5)


def test_a_category_of_numbers_with_gaps():
    codes = X.assign(code=RNG.choice([1.0, 2.0, 99.0, np.nan], N))
    est = quick(column_kinds={"code": "category"}).fit(codes)
    assert set(est.sample(30, noise=True)["code"]) <= {1.0, 2.0, 99.0}
    with pytest.raises(ValueError, match=r"'3'.*\"code\""):
        est.transform(codes.assign(code=3.0))
