"""Every kind of rows keeps one contract: shapes, units, features, JSON, and what comes back to the user."""

import json
import math

import numpy as np
import pandas
import pytest
import torch

from wiseale import config
from wiseale.networks.model import Model
from wiseale.spaces import SPACES, Column, ImagesSpace, MixedSpace, NumbersSpace, SignalsSpace, read_space
from wiseale.spaces.units import Affine

RNG = np.random.default_rng(0)
COLUMNS = (
    Column("mass", whole=True, dtype="int64"),
    Column("colour", "category", ("blue", "green", "red"), dtype="category", ordered=True),
    Column("sold", "binary", (False, True), dtype="bool"),
    Column("hits", "poisson"),
    Column("clicks", "negative_binomial"),
)


def cells(n=40):
    """Rows of COLUMNS, some cells missing."""
    columns = [RNG.normal(1e6, 30, n).round(), RNG.integers(0, 3, n), RNG.integers(0, 2, n), RNG.poisson(3, (2, n))]
    x = np.vstack([np.asarray(c, float) for c in columns]).T
    x[RNG.random(x.shape) < 0.1] = math.nan
    return x


EXAMPLES = [
    (NumbersSpace((3,), scaling="columns", columns=tuple(map(Column, "abc"))), RNG.normal(5, [1, 9, 100], (40, 3))),
    (NumbersSpace((3,)), RNG.normal(size=(40, 3))),
    (MixedSpace.of(COLUMNS, ignored=(("id", "row numbers"),), unseen="other"), cells()),
    (SignalsSpace((2, 7), scaling="global"), RNG.normal(3, 4, (40, 2, 7))),
    (ImagesSpace((1, 4, 5), "unit", "columns"), RNG.integers(0, 256, (40, 1, 4, 5)).astype(np.uint8)),
    (ImagesSpace((3, 2, 2), "unit"), RNG.integers(0, 256, (40, 3, 2, 2)).astype(np.uint8)),
]
every_space = pytest.mark.parametrize(("space", "x"), EXAMPLES, ids=lambda value: getattr(value, "kind", ""))


def test_every_kind_has_an_example():
    assert {space.kind for space, _ in EXAMPLES} == set(SPACES)


def fitted(space, x):
    units = space.fit_units(x, np.arange(len(x)))
    values = torch.from_numpy(x / 255 if x.dtype == np.uint8 else x)
    return units, values


@every_space
def test_json_gives_the_space_back_and_refuses_what_contradicts(space, x):
    values = json.loads(json.dumps(space.to_values()))
    assert read_space(values) == space
    assert hash(read_space(values)) == hash(space)
    for changes in ({"kind": "trees"}, {"x_shape": [*space.x_shape, 1, 1, 1]}, {"x_shape": [0]}, {"more": 1}):
        with pytest.raises(ValueError, match=r"kind|impossible|keys|columns"):
            read_space(values | changes)


@every_space
def test_units_are_invertible_and_their_jacobian_exact(space, x):
    units, values = fitted(space, x)
    assert units.state_dict().keys() == space.units().state_dict().keys()
    assert all(tensor.dtype == torch.float64 for tensor in units.state_dict().values())
    torch.testing.assert_close(units.inverse(units(values)), values, equal_nan=True)
    observed = values.nan_to_num(0.0)[:1]
    jacobian = torch.autograd.functional.jacobian(units, observed).flatten(0, observed.ndim - 1).flatten(1)
    expected = torch.linalg.slogdet(jacobian).logabsdet
    torch.testing.assert_close(units.log_jacobian(observed)[0], expected)
    if space.scaling != "none":
        counts = [i for i, column in enumerate(space.columns) if column.kind != "number"]
        scaled = np.delete(units(values).numpy(), counts, 1) if counts else units(values).numpy()
        axis = 0 if space.scaling == "columns" else None
        np.testing.assert_allclose(np.nanmean(scaled, axis), 0, atol=1e-6)
        np.testing.assert_allclose(np.nanstd(scaled, axis), 1, atol=1e-6)


@every_space
def test_features_and_outputs_have_the_shapes_that_the_space_says(space, x):
    units, values = fitted(space, x)
    features = space.features()
    scaled = units(values).float()
    if space.missing:
        features.fit(scaled)
    seen, alone = features.seen(scaled)
    assert (seen.shape[1:], alone.shape[1:]) == (space.seen_shape, space.features_shape)
    assert bool(seen.isfinite().all())
    likelihood = config.build("likelihood", space.likelihood(binary=False))
    model = Model(config.build("network", "mlp:hidden=4"), space, 2, likelihood).eval()
    decoded = model.decode(torch.zeros(5, 2))
    assert decoded.expected.shape[1:] == space.output_shape
    assert decoded.mean.shape[1:] == decoded.sample(torch.Generator()).shape[1:] == space.x_shape
    batch = scaled[:5]
    for by_cell in (decoded.cell_log_prob(batch), decoded.errors(batch), decoded.surprise(batch)):
        assert by_cell.shape == batch.shape
    torch.testing.assert_close(decoded.cell_log_prob(batch).flatten(1).sum(1), decoded.log_prob(batch))
    every_pair = decoded.pairwise_log_prob(batch)
    torch.testing.assert_close(decoded.average_log_prob(batch), every_pair.mean(1))
    torch.testing.assert_close(every_pair.diagonal(), decoded.log_prob(batch))


@every_space
def test_rows_come_back_as_they_were(space, x):
    answer = space.write(np.asarray(x, np.float64))
    if not isinstance(answer, np.ndarray):
        assert list(answer.columns) == [column.name for column in space.columns]
        assert str(answer["colour"].dtype) == "category"
        assert answer["colour"].cat.ordered
        answer = np.stack(
            [
                column.cat.codes.where(column.notna()) if column.dtype == "category" else column.astype(float)
                for _, column in answer.items()
            ],
            1,
        )
    np.testing.assert_array_equal(answer, x)


def test_cells_as_entries():
    space, x = EXAMPLES[2]
    entries = space.expand(x)
    assert entries.shape[1:] == space.output_shape
    assert [entry.column for entry in space.entries] == [0, 1, 1, 1, 2, 3, 4]
    levels = entries[:, 1:4]
    observed = ~np.isnan(x[:, 1])
    np.testing.assert_array_equal(levels[observed].argmax(1), x[observed, 1])
    assert np.isnan(levels[~observed]).all()
    np.testing.assert_array_equal(entries[:, [0, 4, 5, 6]], x[:, [0, 2, 3, 4]])
    assert space.likeliest_entries(x, most=6) == [0, *np.sort(1 + np.argsort(-np.nansum(levels, 0))[:2]), 4, 5, 6]


def test_truth_values_of_a_table_of_numbers_are_written_as_such():
    space = NumbersSpace(
        (2,), columns=(Column("a"), Column("b", "binary", (False, True), dtype="bool")), frame="pandas"
    )
    answer = space.write(np.array([[0.5, 0.9], [1.5, 0.2]]), like=pandas.DataFrame(index=["x", "y"]))
    assert answer["b"].tolist() == [True, False]
    assert answer.index.tolist() == ["x", "y"]
    assert space.entries[1].level is None  # it is learned as a number


@pytest.mark.parametrize(
    "column",
    [
        Column("a", "category"),
        Column("a", "number", ("x",)),
        Column("a", "binary", ("x", "y", "z")),
        Column("a", "category", ("x", "y"), other="z"),
        Column("a", "category", tuple(range(1001))),
    ],
)
def test_columns_that_contradict_themselves_are_refused(column):
    with pytest.raises(ValueError, match="level"):
        MixedSpace.of([column]).check()


@pytest.mark.parametrize(
    ("value", "spread", "scale"), [(0.1, 0, 1), (1e9 + 0.1, 0, 1), (1e6, 1e-3, 1e-3), (0, 1e-9, 1e-9)]
)
def test_a_column_is_constant_if_it_varies_by_rounding_alone(value, spread, scale):
    """The mean of equal numbers is off by their rounding; a spread of a billionth of the mean is a spread."""
    x = value + spread * np.where(np.arange(1000) % 2, 1.0, -1.0)[:, None]
    units = NumbersSpace((1,), scaling="columns").fit_units(x, np.arange(1000))
    assert float(units.scale[0]) == pytest.approx(scale, rel=1e-3)


def test_cells_that_are_constant_in_training_keep_their_unit():
    """Another value in a later row is then a finite feature."""
    features = MixedSpace.of([Column("hits", "number"), Column("colour", "category", ("blue", "red"))]).features()
    features.fit(torch.tensor([[3.0, 1.0], [3.0, 1.0], [math.nan, 1.0]]))
    assert features(torch.tensor([[5.0, 0.0], [3.0, 1.0]])).tolist() == [[2, 1, -1], [0, 0, 0]]


def test_missing_cells_count_nothing_in_the_jacobian():
    units = Affine(torch.zeros(2).double(), torch.tensor([10.0, 0.1], dtype=torch.float64))
    x = torch.tensor([[1.0, 1.0], [math.nan, 1.0], [1.0, math.nan], [math.nan, math.nan]])
    assert units.log_jacobian(x).tolist() == pytest.approx([0, math.log(10), -math.log(10), 0])
