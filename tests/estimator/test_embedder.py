"""A model as a function from batch to batch: the same codes as transform, in every kind of batch."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from wiseale import AutoEncoder, Embedder, load
from wiseale.errors import ModelFileError
from wiseale.estimator import loading as module

COLUMNS = ["a", "b", "c"]


@pytest.fixture(scope="module")
def frame():
    made = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=COLUMNS)
    return made.assign(id=np.arange(200))[["id", *COLUMNS]]


@pytest.fixture(scope="module")
def model(tmp_path_factory, frame):
    path = tmp_path_factory.mktemp("model") / "model"
    AutoEncoder(latent_dim=2, network="mlp:hidden=8", max_epochs=5, lr=0.01, random_state=0).fit(frame[COLUMNS]).save(
        path
    )
    return path


@pytest.fixture(scope="module")
def codes(model, frame):
    return load(model).transform(frame[COLUMNS]).astype(np.float32)


def test_every_kind_of_batch(model, frame, codes):
    embed = Embedder(model, keep=["id"])
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    for made in (
        embed(frame),
        embed(pl.from_pandas(frame)).to_pandas(),
        embed(arrow).to_pandas(),
        pd.DataFrame(embed({name: frame[name].to_numpy() for name in frame})),
    ):
        assert list(made) == ["id", "z1", "z2"]
        np.testing.assert_array_equal(made["id"], frame["id"])
        np.testing.assert_array_equal(made[["z1", "z2"]].to_numpy(), codes)
    assert type(embed(arrow)) is pa.Table
    np.testing.assert_array_equal(embed(frame[COLUMNS].to_numpy()), codes)


def test_sigma_and_error(model, frame):
    made = Embedder(model, sigma=True, error=True)(frame)
    assert list(made) == ["z1", "z2", "sigma1", "sigma2", "error"]
    estimator = load(model)
    np.testing.assert_allclose(made["sigma2"], estimator.posterior(frame[COLUMNS])[1][:, 1], rtol=1e-6)
    np.testing.assert_allclose(made["error"], estimator.reconstruction_error(frame[COLUMNS]), rtol=1e-6)


def test_an_empty_batch_has_the_same_columns(model, frame):
    embed = Embedder(model, keep=["id"])
    assert embed(frame[:0]).dtypes.to_dict() == embed(frame).dtypes.to_dict()
    features = frame[COLUMNS].to_numpy()
    for rows in (features, torch.tensor(features)):
        made = Embedder(model, sigma=True)(rows[:0])
        assert (made.shape, made.dtype) == ((0, 4), np.float32)


def test_a_model_that_is_saved_again_is_loaded_again(tmp_path, frame):
    embed = Embedder(tmp_path / "model")
    for seed in range(2):
        fitted = AutoEncoder(network="mlp:hidden=8", max_epochs=5, lr=0.01, random_state=seed).fit(frame[COLUMNS])
        fitted.save(tmp_path / "model")
        expected = fitted.transform(frame[COLUMNS]).astype(np.float32)
        np.testing.assert_array_equal(embed(frame)[["z1", "z2"]].to_numpy(), expected)
    with pytest.raises(ModelFileError, match="no model at"):
        Embedder(tmp_path / "nothing")(frame)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelFileError, match="manifest"):
        Embedder(tmp_path / "empty")(frame)


def test_pickled_it_is_small_and_loads_once(model, frame, monkeypatch):
    sent = pickle.dumps(Embedder(model))
    assert len(sent) < 1000
    module._loaded.cache_clear()
    loaded = []
    monkeypatch.setattr(module, "load", lambda path, sha256: loaded.append(path) or load(path, sha256))
    for _ in range(3):
        pickle.loads(sent)(frame)
    assert len(loaded) == 1


def test_whole_observations_in_one_column(tmp_path):
    images = np.random.default_rng(0).random((64, 1, 8, 8)).astype(np.float32)
    AutoEncoder(latent_dim=2, max_epochs=1, random_state=0).fit(images).save(tmp_path / "model")
    embed = Embedder(tmp_path / "model", column="image")
    expected = load(tmp_path / "model").transform(images)
    np.testing.assert_allclose(embed({"image": images})["z2"], expected[:, 1], rtol=1e-5)
    made = embed(pd.DataFrame({"image": list(images)}))
    np.testing.assert_allclose(made["z1"], expected[:, 0], rtol=1e-5)
    with pytest.raises(ValueError, match="say which column"):
        Embedder(tmp_path / "model")({"image": images})


def test_missing_columns_are_named(model, frame):
    with pytest.raises(ValueError, match='no column "b"'):
        Embedder(model)(frame[["a", "c"]])


def test_polars_lazy_frames(model, frame, codes):
    embed = Embedder(model, keep=["id"])
    schema = {"id": pl.Int64, "z1": pl.Float32, "z2": pl.Float32}
    made = pl.from_pandas(frame).lazy().map_batches(embed, schema=schema).collect()
    np.testing.assert_array_equal(made.select("z1", "z2").to_numpy(), codes)


@pytest.mark.long
def test_dask_bags_of_frames(model, frame, codes):
    """Two processes of Dask's own, each with its part of the rows."""
    import dask

    embed = dask.delayed(Embedder(model, keep=["id"]), pure=True)
    parts = dask.compute(*(embed(part) for part in (frame[:90], frame[90:])), scheduler="processes", num_workers=2)
    np.testing.assert_array_equal(pd.concat(parts)[["z1", "z2"]].to_numpy(), codes)
