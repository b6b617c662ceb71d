"""AutoEncoder as a scikit-learn estimator."""

import copy
import json
import os
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

import wiseale
from wiseale import AutoEncoder, load, registry
from wiseale.cli import main
from wiseale.data.defaults import (
    MOST_STEPS,
    PATIENCE_EPOCHS,
    PATIENCE_STEPS,
    UNWATCHED_STEPS,
    WATCH_STEPS,
    choose_length,
)
from wiseale.errors import ModelFileError, WiseAleError
from wiseale.objectives import make_objective, objective_names
from wiseale.training.plan import torch_threads

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5)) @ RNG.normal(size=(5, 5)) * [1, 10, 0.1, 3, 1000] + [0, 5, 0, -7, 1e6]
QUICK = {"network": "mlp:hidden=8", "max_epochs": 2, "batch_size": 8, "random_state": 0, "device": "cpu"}
SIGNALS = RNG.normal(size=(20, 2, 12)).astype(np.float32)
IMAGES = RNG.integers(0, 256, (20, 1, 6, 5)).astype(np.uint8)
SMALL_CONV = {1: "mlp:hidden=8", 2: "conv1d:channels=4,hidden=8", 3: "conv2d:channels=4,hidden=8"}


def quick(*positional, **changes):
    return AutoEncoder(*positional, **QUICK | changes)


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(X)


def test_every_check_of_scikit_learn_passes_and_none_is_skipped():
    """In a process of its own: without SCIPY_ARRAY_API set before scipy is imported, one check skips itself."""
    code = (
        "import json, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "from sklearn.utils.estimator_checks import check_estimator\n"
        "from wiseale import AutoEncoder\n"
        "estimator = AutoEncoder(network='mlp:hidden=8', max_epochs=2, device='cpu')\n"
        "results = check_estimator(estimator, on_fail=None, on_skip=None)\n"
        "print(json.dumps([[r['check_name'], r['status'], str(r['exception'])] for r in results]))"
    )
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "OMP_NUM_THREADS": "1"}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    results = json.loads(shown.stdout.splitlines()[-1])
    assert len(results) > 40
    assert [result for result in results if result[1] != "passed"] == []


@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")  # some of them mix frames and arrays
@pytest.mark.parametrize(
    "name",
    [
        "check_dataframe_column_names_consistency",
        "check_transformer_get_feature_names_out",
        "check_transformer_get_feature_names_out_pandas",
        "check_set_output_transform",
        "check_set_output_transform_pandas",
        "check_global_output_transform_pandas",
        "check_set_output_transform_polars",
        "check_global_set_output_transform_polars",
        "check_inplace_ensure_writeable",
    ],
)
def test_checks_scikit_learn_keeps_for_its_own_estimators(name):
    getattr(estimator_checks, name)("AutoEncoder", quick())


def test_importing_the_package_is_light():
    code = "import sys, wiseale; assert 'AutoEncoder' in dir(wiseale); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = wiseale.nonsense


@pytest.mark.parametrize("x", [X, X.astype(np.float32), SIGNALS, IMAGES], ids=["table", "float32", "signals", "images"])
def test_shapes_and_types(x):
    est = quick(latent_dim=3, network=SMALL_CONV[x.ndim - 1]).fit(x)
    z = est.transform(x)
    expected = np.float32 if x.dtype == np.float32 else np.float64
    assert z.shape == (len(x), 3)
    assert z.dtype == expected
    assert est.inverse_transform(z).shape == x.shape
    assert est.inverse_transform(z).dtype == expected
    assert est.sample(4).shape == (4, *x.shape[1:])
    mu, sigma = est.posterior(x)
    np.testing.assert_array_equal(mu, z)
    assert sigma.shape == z.shape
    assert sigma.min() > 0
    assert est.score_samples(x).shape == est.reconstruction_error(x).shape == (len(x),)
    assert est.score(x) == pytest.approx(est.score_samples(x).mean())
    assert list(est.get_feature_names_out()) == ["autoencoder0", "autoencoder1", "autoencoder2"]


def test_networks_and_likelihoods_are_chosen_from_the_data_and_shown():
    binary = (X.mean(0) < X).astype(int)
    for x, network, likelihood in (
        (X, "mlp", "gaussian"),
        (binary, "mlp", "bernoulli"),
        (SIGNALS, "mlp", "gaussian"),
        (IMAGES, "mlp", "gaussian"),
        (IMAGES // 128, "mlp", "bernoulli"),
    ):
        est = AutoEncoder(max_epochs=1, random_state=0).fit(x)
        assert est.network_.startswith(network)
        assert est.likelihood_.startswith(likelihood)
        assert est.network_ in repr(est)
        assert est.likelihood_ in repr(est)
        assert est.model_.units.is_identity == (likelihood == "bernoulli")
    assert repr(AutoEncoder(latent_dim=3)) == "AutoEncoder(latent_dim=3)"


def test_units_are_the_user_s():
    """The same data in other units: the same codes, reconstructions in those units, scores apart by the Jacobian."""
    scale, shift = np.array([2, 0.5, 4, 1, 8]), np.array([1, 0, -3, 100, 2])  # powers of two: exact
    here, there = quick(max_epochs=5).fit(X), quick(max_epochs=5).fit(X * scale)
    z = here.transform(X)
    np.testing.assert_allclose(there.transform(X * scale), z, rtol=1e-6)
    np.testing.assert_allclose(there.inverse_transform(z), here.inverse_transform(z) * scale, rtol=1e-6)
    np.testing.assert_allclose(there.score(X * scale), here.score(X) - np.log(scale).sum(), rtol=1e-6)
    shifted = quick(max_epochs=5).fit(X * scale + shift)
    np.testing.assert_allclose(shifted.transform(X * scale + shift), z, atol=1e-4)


def test_it_learns():
    """Rows on a noisy circle: one code nearly suffices, so much less than the variance is left."""
    angle = RNG.uniform(0, 2 * np.pi, 400)
    x = np.stack([np.cos(angle), np.sin(angle)], 1) + 0.02 * RNG.normal(size=(400, 2))
    est = AutoEncoder("wise_ale:prior_weight=0.01", 2, network="mlp:hidden=64,64", max_epochs=60, random_state=0).fit(x)
    left = np.mean((est.inverse_transform(est.transform(x)) - x) ** 2) / x.var()
    assert left < 0.1
    assert est.history_[-1]["train_loss"] < est.history_[0]["train_loss"]
    odd = np.array([[3.0, 3.0], [0.0, 0.0], [-2.0, 2.0]])
    assert est.reconstruction_error(odd).min() > np.quantile(est.reconstruction_error(x), 0.9)
    assert est.score_samples(odd[[0, 2]]).max() < np.quantile(est.score_samples(x), 0.1)


def test_the_same_seed_gives_the_same_bits_and_touches_nothing_global():
    before = (torch.random.get_rng_state(), torch.get_num_threads(), np.random.get_state()[1].copy())  # noqa: NPY002
    first, again, other = (quick(random_state=seed).fit(X) for seed in (5, 5, 6))
    quick(random_state=None).fit(X)
    after = (torch.random.get_rng_state(), torch.get_num_threads(), np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(before[0], after[0])
    assert before[1] == after[1]
    np.testing.assert_array_equal(before[2], after[2])
    np.testing.assert_array_equal(first.transform(X), again.transform(X))
    np.testing.assert_array_equal(first.sample(3), again.sample(3))
    assert first.history_ == again.history_
    assert not np.array_equal(first.transform(X), other.transform(X))
    drawn = [quick(random_state=np.random.RandomState(3)).fit(X).seed_ for _ in range(2)]
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(("limit", "expected"), [(1, 1), (3, 2)])
def test_threads_are_chosen_within_the_limit_of_torch(monkeypatch, limit, expected):
    """A network of several million multiply-adds would get 2 of 2 cores."""
    seen = []
    monkeypatch.setattr("wiseale.training.plan.cores", lambda: 2)
    monkeypatch.setattr("wiseale.estimator.fit.fit", lambda *_: seen.append(torch.get_num_threads()))
    monkeypatch.setattr("wiseale.training.plan.is_small_step", lambda *_: False)
    with torch_threads(limit):
        quick().fit(X)
    assert seen == [expected]


def test_few_rows_are_encoded_on_one_thread(fitted, monkeypatch):
    seen = []
    encode = fitted._codec.encode
    monkeypatch.setattr(fitted._codec, "encode", lambda rows: seen.append(torch.get_num_threads()) or encode(rows))
    with torch_threads(2):
        few = fitted.transform(X)
        monkeypatch.setattr("wiseale.training.plan.SMALL_STEP", 0)
        many = fitted.transform(X)
        assert torch.get_num_threads() == 2
    assert seen == [1, 2]
    np.testing.assert_allclose(few, many, rtol=1e-12)


def test_sample_follows_its_own_random_state(fitted):
    np.testing.assert_array_equal(fitted.sample(4), fitted.sample(4))
    np.testing.assert_array_equal(fitted.sample(4, random_state=1), fitted.sample(4, random_state=1))
    assert not np.array_equal(fitted.sample(4), fitted.sample(4, random_state=1))
    assert not np.array_equal(fitted.sample(4), fitted.sample(4, noise=True))
    with pytest.raises(ValueError, match=r"n_samples .*1.* got 0"):
        fitted.sample(0)


def test_data_frames_and_tensors(fitted):
    names = list("abcde")
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        est = quick().fit(frame)
        np.testing.assert_array_equal(est.transform(frame), fitted.transform(X))
        assert list(est.feature_names_in_) == names
    tensor = torch.from_numpy(X).requires_grad_()
    np.testing.assert_array_equal(quick().fit(tensor).transform(tensor), fitted.transform(X))
    codes = torch.from_numpy(fitted.transform(X))
    np.testing.assert_array_equal(fitted.inverse_transform(codes), fitted.inverse_transform(codes.numpy()))
    assert fitted.transform(tensor.detach().bfloat16()).dtype == np.float32
    with pytest.raises(TypeError, match="Sparse"):
        fitted.transform(tensor.detach().to_sparse())


def test_memory_mapped_arrays_are_read_in_place(tmp_path, monkeypatch, fitted):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    monkeypatch.setattr("wiseale.training.batches._IN_MEMORY_BYTES", 0)
    np.testing.assert_array_equal(quick().fit(mapped).transform(mapped), fitted.transform(X))


def test_pipeline_and_grid_search():
    pipeline = make_pipeline(StandardScaler(), quick())
    grid = {"autoencoder__latent_dim": [1, 2], "autoencoder__objective": ["aevb", "wise_ale:prior_weight=0.5"]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.transform(X).shape == (60, search.best_params_["autoencoder__latent_dim"])
    assert np.isfinite(cross_val_score(quick(), load_breast_cancer().data[:80], cv=2)).all()


def test_clone_copy_and_pickle(fitted):
    objective = make_objective("beta_vae:beta=0.5")
    est = clone(quick(objective))
    assert est.objective == objective
    assert est.fit(X).objective_ == "beta_vae:beta=0.5"
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(other.transform(X), fitted.transform(X))
        np.testing.assert_array_equal(other.sample(2), fitted.sample(2))


def test_early_stopping_takes_the_best_epoch():
    x = X[:40]
    est = quick(max_epochs=200, patience=3, held_out=0.3, lr=0.03).fit(x)
    losses = [record["held_out_loss"] for record in est.history_]
    assert est.n_epochs_ == len(losses) < 200
    assert est.best_epoch_ == int(np.argmin(losses)) + 1 == est.n_epochs_ - 3
    np.testing.assert_array_equal(
        est.transform(x), quick(max_epochs=est.best_epoch_, held_out=0.3, lr=0.03).fit(x).transform(x)
    )


@pytest.mark.parametrize(
    ("n", "steps_per_epoch"), [(2, 1), (200, 2), (1797, 25), (64_000, 900), (2_000_000, 28_125), (10**8, 1_406_250)]
)
def test_auto_counts_in_steps_up_to_whole_epochs(n, steps_per_epoch):
    assert steps_per_epoch == max(1, (n - round(0.1 * n)) // 64)

    def chosen(*asked, watched=True):
        length = choose_length(*asked, steps_per_epoch, watched=watched)
        return length.max_epochs, length.patience, length.watch_every

    def covers(epochs, steps):
        return epochs * steps_per_epoch >= steps > (epochs - 1) * steps_per_epoch

    epochs, patience, watch_every = chosen(None, "auto")
    assert covers(epochs, MOST_STEPS)
    assert covers(patience, PATIENCE_STEPS) or patience == PATIENCE_EPOCHS > PATIENCE_STEPS / steps_per_epoch
    assert watch_every == 1 or watch_every * steps_per_epoch <= WATCH_STEPS
    unwatched = chosen(None, "auto", watched=False)
    assert covers(unwatched[0], UNWATCHED_STEPS)
    assert unwatched[1:] == (None, 1)
    assert chosen(7, "auto") == (7, None, 1)
    assert chosen(None, 4) == (epochs, 4, 1)
    assert chosen(7, 4) == (7, 4, 1)


def test_auto_by_itself(monkeypatch):
    monkeypatch.setattr("wiseale.data.defaults.PATIENCE_STEPS", 30)
    monkeypatch.setattr("wiseale.data.defaults.MOST_STEPS", 100)
    monkeypatch.setattr("wiseale.data.defaults.UNWATCHED_STEPS", 30)
    est = AutoEncoder(network="mlp:hidden=8", batch_size=18, random_state=0).fit(X)  # 54 rows to train on
    assert 10 <= est.n_epochs_ <= 34
    watched = [record["epoch"] for record in est.history_ if "held_out_loss" in record]
    assert watched[:2] == [6, 12]  # every 18 of its 3 steps an epoch, at the most 20
    few = AutoEncoder(network="mlp:hidden=8", random_state=0).fit(X[:4])  # nothing can be held out
    assert few.n_epochs_ == 30
    assert "held_out_loss" not in few.history_[0]


def test_verbose_says_what_was_chosen(capsys):
    quick().fit(X)
    assert capsys.readouterr().out == ""
    quick(verbose=2).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert (
        "60 rows, 5 columns; network mlp:hidden=8, likelihood gaussian:x_sigma=columns, latent dimension 2" in lines[0]
    )
    assert lines[1].startswith("epoch 1/2: loss ")
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (sparse.csr_array(X), TypeError, "[Ss]parse"),
        (X.astype(complex), ValueError, "Complex data not supported"),
        (np.array([["a", "b"], ["c", "d"]]), ValueError, "X is an array with words in it, such as 'a'"),
        (np.array([[{}, 1], [2, 3]], dtype=object), TypeError, "string or a real number"),
        (X[:, 0], ValueError, "Reshape your data"),
        (
            np.where(SIGNALS[3, 1, 2] == SIGNALS, np.nan, SIGNALS),
            ValueError,
            "NaN: row 4 .* missing cells are learned",
        ),
        (np.where(X[3, 2] == X, np.inf, X), ValueError, "infinity"),
        (X[:1], ValueError, r"1 sample\(s\)"),
        (X[:0], ValueError, r"0 sample\(s\)"),
        (X[:, :0], ValueError, r"0 feature\(s\)"),
        (X.reshape(2, 2, 3, 5, 5, 1), ValueError, "has the shape"),
        (np.empty((4, 3, 0)), ValueError, "has the shape|0 feature"),
        (X * 1e200, ValueError, r"row 0 of X has -?\d.*, beyond float32, in column 0"),
    ],
)
def test_data_that_cannot_be_used(bad, error, message):
    with pytest.raises(error, match=message):
        quick().fit(bad)


def test_missing_cells_are_refused_in_words_where_the_model_has_learned_none(fitted):
    holed = np.where(X[3, 2] == X, np.nan, X)
    place = r"Input X contains NaN: row 4 \(counted from 1\) has a missing cell in column {}; "
    with pytest.raises(ValueError, match=place.format(3) + "fill it, or say missing='learn'"):
        quick(missing="error").fit(holed)
    learned = quick().fit(holed).set_params(missing="error")
    with pytest.raises(ValueError, match=place.format(3) + "fill it, or say missing='learn'"):
        learned.transform(holed)
    complete = "the model was fitted on rows without any: fit it on rows that have some, or fill it first$"
    with pytest.raises(ValueError, match=place.format(3) + complete):
        fitted.transform(holed)
    named = quick().fit(pd.DataFrame(X, columns=list("abcde")))
    with pytest.raises(ValueError, match=place.format('"c"') + complete):
        named.score(pd.DataFrame(holed, columns=list("abcde")))
    signals = quick(network=SMALL_CONV[2]).fit(SIGNALS)
    with pytest.raises(
        ValueError, match=r"NaN: row 4 .* has a missing value; fill it first: missing cells are learned"
    ):
        signals.transform(np.where(SIGNALS[3, 1, 2] == SIGNALS, np.nan, SIGNALS))
    with pytest.raises(ValueError, match="infinity"):
        fitted.transform(np.where(X[3, 2] == X, np.inf, X))


@pytest.mark.parametrize("x", [np.ones((20, 3)), np.c_[X, np.full(60, 0.1)], X[:, :1], X[:2], X[:3] > 0])
def test_data_that_is_odd_but_usable(x):
    est = quick(batch_size="auto").fit(x)
    assert np.isfinite(est.transform(x)).all()
    assert np.isfinite(est.score(x))
    np.testing.assert_allclose(est.inverse_transform(est.transform(x))[:, -1] * 0, 0)


def test_another_shape_or_other_names_at_transform(fitted):
    with pytest.raises(ValueError, match="X has 4 features, but AutoEncoder is expecting 5 features"):
        fitted.transform(X[:, :4])
    named = quick().fit(pd.DataFrame(X, columns=list("abcde")))
    with pytest.raises(ValueError, match="Feature names unseen at fit time"):
        named.score_samples(pd.DataFrame(X, columns=list("abcdf")))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.transform(X)
    signals = quick(network=SMALL_CONV[2]).fit(SIGNALS)
    with pytest.raises(ValueError, match=r"\(2, 11\).*\(2, 12\)"):
        signals.transform(SIGNALS[:, :, 1:])
    with pytest.raises(ValueError, match="Z has 3 columns, but the codes have 2"):
        fitted.inverse_transform(np.zeros((2, 3)))
    with pytest.raises(NotFittedError):
        AutoEncoder().inverse_transform(np.zeros((2, 2)))
    with pytest.raises(NotFittedError):
        AutoEncoder().sample()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": "wise_alle"}, "did you mean 'wise_ale'"),
        ({"objective": 3}, "objective must be a name"),
        ({"network": "mlp:hiden=3"}, "did you mean 'hidden'"),
        ({"network": "conv2d"}, "network conv2d needs images"),
        ({"latent_dim": 0}, "latent_dim must be at least 1, got 0"),
        ({"latent_dim": None}, "latent_dim must be a number, got None"),
        ({"lr": -1.0}, "lr must be above 0"),
        ({"batch_size": 55}, "batch_size must be at most the 54 training rows"),
        ({"held_out": 0.0, "patience": 2}, "patience needs held-out rows"),
        ({"max_epochs": 4, "patience": 4, "prior_warmup": 6}, "prior_warmup must end within the 4 epochs"),
        ({"device": "warp"}, "device 'warp' cannot be used here"),
        ({"standardize": "rows"}, "standardize must be 'auto'"),
        ({"likelihood": "bernoulli"}, "needs values between 0 and 1"),
        ({"likelihood": "bernoulli", "standardize": "columns"}, "needs another likelihood"),
        ({"random_state": -1}, "Seed must be|random_state|seed"),
    ],
)
def test_parameters_that_cannot_be_used(changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        quick(**changes).fit(X)
    assert isinstance(caught.value, WiseAleError) or "random_state" in changes


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_with_channels_last_are_not_taken_for_others(channels):
    """As in files: nothing is guessed, and the way out is a line of Python."""
    images = RNG.integers(0, 256, (20, 8, 6, channels)).astype(np.uint8)
    said = r"\(20, 8, 6, .\), which looks like \(n, height, width, channels\): give X.transpose\(0, 3, 1, 2\), or"
    with pytest.raises(ValueError, match=said) as caught:
        quick().fit(images)
    assert isinstance(caught.value, WiseAleError)
    assert quick().fit(images.transpose(0, 3, 1, 2)).x_shape_ == (channels, 8, 6)
    assert quick().fit(images.transpose(0, 1, 3, 2)).x_shape_ == (8, channels, 6)


@pytest.mark.parametrize("name", registry.names("objective"))
def test_every_objective_fits_saves_and_samples(name, tmp_path):
    est = quick(name).fit(X)
    est.save(tmp_path / "model")
    for other in (load(tmp_path / "model"), pickle.loads(pickle.dumps(est))):
        np.testing.assert_array_equal(other.transform(X), est.transform(X))
        np.testing.assert_array_equal(other.sample(5, random_state=1), est.sample(5, random_state=1))
    assert est.inverse_transform(est.transform(X)).shape == X.shape
    assert np.isfinite(est.sample(5)).all()
    assert hasattr(est, "score") == hasattr(AutoEncoder(name), "score_samples")
    if hasattr(est, "score"):
        assert np.isfinite(est.score(X))


@pytest.mark.parametrize("name", [name for name in objective_names() if not make_objective(name).stochastic])
def test_a_deterministic_encoder_has_codes_but_no_score(name):
    est = quick(name).fit(X)
    assert np.isfinite(est.reconstruction_error(X)).all()
    assert not hasattr(est, "score")
    with pytest.raises(ValueError, match="deterministic encoder"):
        est.posterior(X)
    assert hasattr(AutoEncoder("wae_mmd:encoder=gaussian"), "score")


def test_a_prior_of_its_own_has_samples_but_no_score():
    """The ELBO against N(0, I) is not one of a GMVAE, whose prior is a mixture."""
    before = torch.random.get_rng_state()
    est = quick("gmvae:clusters=3,w_dim=2,hidden=8,prior_hidden=8").fit(X)
    assert not hasattr(est, "score")
    assert torch.equal(torch.random.get_rng_state(), before)
    assert est.posterior(X)[1].min() > 0


def test_save_and_load(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    back = load(str(tmp_path / "model"))
    np.testing.assert_array_equal(back.transform(X), fitted.transform(X))
    np.testing.assert_array_equal(back.score_samples(X), fitted.score_samples(X))
    assert (back.objective, back.latent_dim, back.network_) == (fitted.objective_, 2, fitted.network_)
    assert "read from" in repr(back)
    back.save(tmp_path / "model")  # ours: replaced
    refitted = clone(back).set_params(**{k: v for k, v in QUICK.items() if k != "network"}).fit(X)
    np.testing.assert_array_equal(refitted.transform(X), fitted.transform(X))
    named = quick().fit(pd.DataFrame(X, columns=list("abcde")))
    named.save(tmp_path / "named")
    assert list(load(tmp_path / "named").feature_names_in_) == list("abcde")
    with pytest.raises(ValueError, match="Feature names unseen"):
        load(tmp_path / "named").transform(pd.DataFrame(X, columns=list("abcdf")))


@pytest.mark.parametrize("standardize", ["none", "global", "columns"])
@pytest.mark.parametrize("x", [X, SIGNALS])
def test_a_clone_of_a_loaded_model_standardises_as_it_was_standardised(tmp_path, x, standardize):
    est = quick(standardize=standardize).fit(x)
    est.save(tmp_path / "model")
    back = load(tmp_path / "model")
    assert (back.standardize, back.best_epoch_, back.n_epochs_) == (standardize, None, 0)
    assert back.n_features_in_ == est.n_features_in_
    again = clone(back).set_params(**{k: v for k, v in QUICK.items() if k != "network"}).fit(x)
    np.testing.assert_array_equal(again.transform(x), est.transform(x))


def test_saving_never_deletes_what_is_not_ours(fitted, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ModelFileError, match="holds other things"):
        fitted.save(tmp_path)
    with pytest.raises(ModelFileError, match="is not a directory"):
        fitted.save(tmp_path / "thesis.tex")
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    with pytest.raises(ModelFileError, match="no model at"):
        load(tmp_path / "nothing")


def test_the_command_line_and_the_estimator_train_the_same_model(tmp_path, capsys):
    """Same data, settings and seed: weights equal to the bit; a run loads as the estimator that would have made it."""
    x = X.astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    settings = ["--network", "mlp:hidden=8", "--max-epochs", "3", "--batch-size", "8", "--latent-dim", "2"]
    run = tmp_path / "run"
    with pytest.raises(SystemExit) as ended:
        main(["train", str(tmp_path / "x.npy"), *settings, "--held-out", "0.1", "--threads", "1", "--out", str(run)])
    assert ended.value.code == 0, capsys.readouterr()
    loaded = load(run)
    assert len(loaded.history_) == 3
    est = quick(max_epochs=3).fit(x)
    for (name, ours), theirs in zip(est.model_.state_dict().items(), loaded.model_.state_dict().values(), strict=True):
        assert torch.equal(ours, theirs), name
    np.testing.assert_array_equal(loaded.transform(x), est.transform(x))
    assert loaded.history_ == est.history_
    assert (loaded.lr, loaded.batch_size, loaded.random_state) == (5e-4, 8, 0)
    again = clone(loaded).fit(x)
    np.testing.assert_array_equal(again.transform(x), est.transform(x))


def test_a_run_knows_its_best_epoch_and_that_its_length_was_chosen(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("wiseale.data.defaults.PATIENCE_STEPS", 30)
    monkeypatch.setattr("wiseale.data.defaults.MOST_STEPS", 200)
    np.save(tmp_path / "x.npy", X)
    settings = ["--network", "mlp:hidden=8", "--latent-dim", "2", "--batch-size", "18", "--lr", "0.05"]
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "train",
                str(tmp_path / "x.npy"),
                *settings,
                "--threads",
                "1",
                "--no-figures",
                "--out",
                str(tmp_path / "run"),
            ]
        )
    assert ended.value.code == 0, capsys.readouterr()
    loaded = load(tmp_path / "run")
    assert (loaded.max_epochs, loaded.patience) == ("auto", "auto")  # watched every 6 epochs
    again = clone(loaded).fit(X)
    np.testing.assert_array_equal(again.transform(X), loaded.transform(X))
    assert loaded.best_epoch_ == again.best_epoch_ < again.n_epochs_ == loaded.n_epochs_
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    assert load(tmp_path / "run").best_epoch_ is None
