"""One door: the same data through every kind of file and through the estimator gives the same settings and weights."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import run

from wiseale import AutoEncoder, load
from wiseale.data.defaults import HELD_OUT
from wiseale.models.model_file import load_model
from wiseale.spaces import NumbersSpace

RNG = np.random.default_rng(11)
N = 40
TABLE = RNG.normal(size=(N, 3)) * [1, 50, 0.01] + [0, 7, -3]
BYTES = RNG.integers(0, 256, (N, 1, 6, 6), dtype=np.uint8)
SIGNALS = RNG.normal(size=(N, 2, 10))


@dataclass(frozen=True)
class Case:
    """An array and what must be chosen for it."""

    x: np.ndarray
    network: str
    likelihood: str
    scaling: str
    reading: str = "values"


CASES = {
    "float64 table": Case(TABLE, "mlp", "gaussian", "columns"),
    "float32 table": Case(TABLE.astype("f4"), "mlp", "gaussian", "columns"),
    "float16 table": Case(TABLE.astype("f2"), "mlp", "gaussian", "columns"),
    "column-major table": Case(np.asfortranarray(TABLE), "mlp", "gaussian", "columns"),
    "big-endian table": Case(TABLE.astype(">f8"), "mlp", "gaussian", "columns"),
    "one feature": Case(TABLE[:, :1], "mlp", "gaussian", "columns"),
    "uint8 table": Case(BYTES.reshape(N, -1), "mlp", "gaussian", "columns"),
    "uint8 table of 0 and 255": Case((BYTES.reshape(N, -1) // 128 * 255), "mlp", "gaussian", "columns"),
    "int64 table": Case(RNG.integers(-(2**40), 2**40, (N, 2)), "mlp", "gaussian", "columns"),
    "constant column": Case(np.c_[TABLE, np.full(N, 0.1)], "mlp", "gaussian", "columns"),
    "every column constant": Case(np.full((N, 2), 7.0), "mlp", "gaussian", "columns"),
    "offset 1e9, spread 0.01": Case(1e9 + 0.01 * TABLE[:, :2], "mlp", "gaussian", "columns"),
    "zeros and ones": Case((TABLE.mean(0) < TABLE).astype(float), "mlp", "bernoulli", "none"),
    "bool table": Case(TABLE.mean(0) < TABLE, "mlp", "bernoulli", "none"),
    "numbers between 0 and 1": Case(RNG.random((N, 3)), "mlp", "gaussian", "columns"),
    "float64 signals": Case(SIGNALS, "mlp", "gaussian", "global"),
    "float32 signals": Case(SIGNALS.astype("f4"), "mlp", "gaussian", "global"),
    "column-major signals": Case(np.asfortranarray(SIGNALS), "mlp", "gaussian", "global"),
    "int16 signals": Case((SIGNALS * 1000).astype("i2"), "mlp", "gaussian", "global"),
    "uint8 signals": Case(BYTES[:, 0], "mlp", "gaussian", "global"),
    "bool signals": Case(SIGNALS > 0, "mlp", "bernoulli", "none"),
    "uint8 images": Case(BYTES, "mlp", "gaussian", "global", "unit"),
    "uint8 images of 0 and 255": Case(BYTES // 128 * 255, "mlp", "bernoulli", "none", "unit"),
    "uint8 images of 0 and 1": Case(BYTES // 128, "mlp", "bernoulli", "none"),
    "bool images": Case(BYTES > 127, "mlp", "bernoulli", "none"),
    "float64 images": Case(BYTES * 0.3, "mlp", "gaussian", "global"),
    "column-major uint8 images": Case(np.asfortranarray(BYTES), "mlp", "gaussian", "global", "unit"),
}


def write(x, folder: Path, form: str) -> Path:
    """The array in a file of this form."""
    path = folder / f"x.{form}"
    names = [f"c{i}" for i in range(x.shape[1])]
    if form == "npy":
        np.save(path, x)
    elif form == "npz":
        np.savez_compressed(path, x=x)
    elif form == "csv":
        np.savetxt(path, x, "%.17g", delimiter=",", header=",".join(names), comments="")
    else:
        native = x.astype(x.dtype.newbyteorder("="))
        pd.DataFrame(native, columns=names).to_parquet(path)
    return path


def train(capsys, path, out, *settings):
    """The estimator that a run of ``wiseale train`` loads as."""
    code, _, errors = run(
        capsys, "train", path, "--latent-dim", 2, "--threads", 1, "--no-figures", "--out", out, *settings
    )
    assert code == 0, errors
    return load(out)


def assert_equal_models(ours, theirs):
    assert (ours.network_, ours.likelihood_, ours.x_shape_) == (theirs.network_, theirs.likelihood_, theirs.x_shape_)
    assert ours.history_ == theirs.history_
    left, right = ours.model_.state_dict(), theirs.model_.state_dict()
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].numpy().tobytes() == right[name].numpy().tobytes(), name


def scaling_of(model):
    if model.units.is_identity:
        return "none"
    return "global" if model.units.mean.shape == () else "columns"


def without_names(settings):
    """Names and storage differ between kinds of file."""
    space = settings.space
    if isinstance(space, NumbersSpace):
        space = replace(space, columns=())
    return replace(settings, space=space, data_fingerprint="")


@pytest.mark.parametrize("name", CASES)
def test_every_door_leads_to_the_same_model(name, tmp_path, capsys):
    case = CASES[name]
    est = AutoEncoder(latent_dim=2, max_epochs=2, random_state=0, device="cpu").fit(case.x)
    est.save(tmp_path / "model")
    model, settings = load_model(tmp_path / "model")
    chosen = (settings.network.partition(":")[0], settings.likelihood.partition(":")[0], settings.space.reading)
    assert chosen == (case.network, case.likelihood, case.reading)
    assert scaling_of(model) == case.scaling
    for form in ("npy", "npz", "csv", "parquet") if case.x.ndim == 2 else ("npy", "npz"):
        path = write(case.x, tmp_path, form)
        loaded = train(capsys, path, tmp_path / form, "--max-epochs", 2, "--device", "cpu")
        assert_equal_models(est, loaded)
        _, stored = load_model(tmp_path / form / "model")
        assert without_names(stored) == without_names(settings)
    code, _, errors = run(capsys, "embed", tmp_path / "npy", tmp_path / "x.npy", "-o", tmp_path / "codes.npy")
    assert code == 0, errors
    np.testing.assert_allclose(np.load(tmp_path / "codes.npy"), est.transform(case.x), atol=2e-6)


@pytest.mark.parametrize("settings", [{}, {"patience": 2}, {"patience": None}, {"max_epochs": 3}, {"held_out": 0.0}])
def test_training_lasts_equally_long(settings, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("wiseale.data.defaults.PATIENCE_STEPS", 8)
    monkeypatch.setattr("wiseale.data.defaults.UNWATCHED_STEPS", 8)
    monkeypatch.setattr("wiseale.data.defaults.MOST_STEPS", 24)
    est = AutoEncoder(latent_dim=2, batch_size=12, lr=0.05, random_state=0, **settings).fit(TABLE)
    options = [word for key, value in settings.items() for word in (f"--{key.replace('_', '-')}", str(value).lower())]
    path = write(TABLE, tmp_path, "csv")
    loaded = train(capsys, path, tmp_path / "run", "--batch-size", 12, "--lr", 0.05, *options)
    assert_equal_models(est, loaded)
    most = {"max_epochs": 3, "held_out": 3, "patience": 8 if settings.get("patience") else 3}
    assert est.n_epochs_ <= most.get(next(iter(settings), ""), 8)
    assert any("held_out_loss" in record for record in est.history_) == (settings.get("held_out", HELD_OUT) > 0)


@pytest.mark.parametrize(
    ("x", "likelihood", "scaling"),
    [(RNG.random((N, 3)), "bernoulli", "none"), (CASES["bool table"].x, "gaussian:x_sigma=0.5", "columns")],
)
def test_the_scaling_follows_the_likelihood_asked_for(x, likelihood, scaling, tmp_path, capsys):
    est = AutoEncoder(latent_dim=2, likelihood=likelihood, max_epochs=1, random_state=0).fit(x)
    path = write(x, tmp_path, "npy")
    loaded = train(capsys, path, tmp_path / "run", "--max-epochs", 1, "--likelihood", likelihood)
    assert_equal_models(est, loaded)
    assert scaling_of(est.model_) == scaling


def test_the_range_of_bernoulli_data_is_checked_at_training_and_at_scoring(tmp_path, capsys):
    said = "a Bernoulli likelihood needs values between 0 and 1: the data goes from -3 to 9"
    inside, outside = RNG.random((N, 3)), np.clip(TABLE, -3, 9)
    outside[0] = -3, 9, 0
    bad = write(outside, tmp_path, "npy")
    (tmp_path / "inside").mkdir()
    good = write(inside, tmp_path / "inside", "npy")
    settings = ("--likelihood", "bernoulli", "--max-epochs", 1)
    code, _, errors = run(capsys, "train", bad, *settings, "--out", tmp_path / "refused")
    assert (code, said in errors) == (2, True)
    assert not (tmp_path / "refused").exists()
    with pytest.raises(ValueError, match=said):
        AutoEncoder(likelihood="bernoulli").fit(outside)
    loaded = train(capsys, good, tmp_path / "run", *settings)
    with pytest.raises(ValueError, match=said):
        loaded.score_samples(outside)
    code, _, errors = run(capsys, "evaluate", tmp_path / "run", "--data", bad)
    assert (code, said in errors) == (2, True)


def test_standardising_for_a_bernoulli_likelihood_is_refused(tmp_path, capsys):
    x = CASES["bool table"].x
    path = write(x, tmp_path, "npy")
    said = "standardize=columns needs another likelihood than bernoulli: say gaussian"
    code, _, errors = run(capsys, "train", f"{path}:standardize=columns", "--out", tmp_path / "run")
    assert (code, said in errors) == (2, True)
    with pytest.raises(ValueError, match=said):
        AutoEncoder(standardize="columns").fit(x)


def test_constant_columns_are_said_aloud(tmp_path, capsys):
    frame = pd.DataFrame({"price": TABLE[:, 0], "year": 2020.0})
    frame.to_csv(tmp_path / "sales.csv", index=False)
    settings = ("--max-epochs", 1, "--network", "mlp:hidden=4", "--out", tmp_path / "run")
    _, shown, _ = run(capsys, "train", tmp_path / "sales.csv", *settings)
    assert "1 constant column: year" in shown
    AutoEncoder(network="mlp:hidden=4", max_epochs=1, verbose=1).fit(frame)
    assert "2 columns (1 constant column: year)" in capsys.readouterr().out


def test_a_large_offset_survives_training_and_use():
    """Codes of rows 1e9 away equal those of the same rows without the offset, up to float64's rounding of the rows."""
    offset = 2.0**30
    near = np.round(TABLE[:, :2] * 2**10) / 2**10  # multiples of 2⁻¹⁰, which float64 holds beside 2³⁰ exactly
    settings = {"latent_dim": 1, "network": "mlp:hidden=8", "max_epochs": 3, "random_state": 0}
    here, there = AutoEncoder(**settings).fit(near), AutoEncoder(**settings).fit(near + offset)
    np.testing.assert_allclose(there.transform(near + offset), here.transform(near), atol=1e-4)
    back = there.inverse_transform(there.transform(near + offset)) - offset
    np.testing.assert_allclose(back, here.inverse_transform(here.transform(near)), atol=1e-2)
