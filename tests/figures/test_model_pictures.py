"""The standard pictures of a run, for every kind of data, and the rows they show."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from wiseale.cli.display import NoDisplay
from wiseale.config import TrainConfig
from wiseale.evaluation.encoded import encode_run
from wiseale.experiments.comparison import Result, System
from wiseale.experiments.figures import draw_all
from wiseale.figures import model_pictures as pictures
from wiseale.figures.model_pictures import STANDARD, run_pictures
from wiseale.runs.run import Run
from wiseale.runs.train import start

RNG = np.random.default_rng(0)
DATA = {
    "table": RNG.normal(size=(60, 4)) * [1, 0, 1e6, 1e-6] + [0, 7, 1e6, 0],  # a constant column, and several scales
    "one column": RNG.normal(size=(60, 1)),
    "wide table": RNG.normal(size=(60, 40)),
    "holes": np.where(RNG.random((60, 4)) < 0.1, np.nan, np.c_[RNG.normal(size=(60, 2)), RNG.integers(0, 2, (60, 2))]),
    "signals": RNG.normal(size=(60, 2, 16)),
    "images": RNG.random((60, 1, 8, 8)),
    "two channels": 200 * RNG.random((60, 2, 8, 8)),
}


def trained(folder, x, **settings):
    np.save(folder / "x.npy", x)
    common = {"network": "mlp:hidden=8", "max_epochs": 2, "batch_size": 16, "threads": 1, "latent_dim": 2}
    return start(TrainConfig(data=str(folder / "x.npy"), **(common | settings)), folder / "run", NoDisplay())


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        *((kind, {}) for kind in DATA),
        ("table", {"latent_dim": 1}),
        ("table", {"latent_dim": 7, "objective": "wae_mmd"}),
        ("table", {"held_out": 0.0}),
        ("signals", {"held_out": 0.0, "latent_dim": 1}),
        ("table", {"objective": "gmvae:clusters=2,w_dim=2,hidden=8,prior_hidden=8"}),
    ],
)
def test_every_finished_run_has_the_standard_pictures(tmp_path, kind, settings):
    outcome = trained(tmp_path, DATA[kind], **settings)
    made = run_pictures(outcome.path, outcome.dataset)
    assert [path.stem for path in made] == list(STANDARD)
    for path in made:
        with Image.open(path) as picture:
            assert np.ptp(np.asarray(picture.convert("L"))) > 100  # neither empty nor uniform
    assert not list((outcome.path / "figures").glob("*.svg"))


def test_pictures_that_are_there_are_not_drawn_again(tmp_path, monkeypatch):
    outcome = trained(tmp_path, DATA["table"])
    run_pictures(outcome.path, outcome.dataset)
    monkeypatch.setattr(pictures, "model_pictures", None)  # would fail if it were called
    assert len(run_pictures(outcome.path)) == len(STANDARD)


def test_all_rows_are_shown_and_those_held_out_are_marked(tmp_path):
    """Rows that the standardisation was not fitted on are those the loop held out: it is the mean of the others."""
    x = DATA["table"]
    outcome = trained(tmp_path, x, held_out=0.2)
    every = encode_run(Run.open(outcome.path), "all rows")
    np.testing.assert_array_equal(every.rows.x, x)
    assert every.unseen.sum() == 12
    np.testing.assert_allclose(every.model.units.mean.numpy(), x[~every.unseen].mean(0), rtol=1e-12)
    unseen = encode_run(Run.open(outcome.path))
    np.testing.assert_array_equal(unseen.rows.x, x[every.unseen])

    some = encode_run(Run.open(outcome.path), "all rows", 10)
    np.testing.assert_array_equal(some.rows.x, x[np.linspace(0, 59, 10).astype(int)])


def test_test_rows_follow_the_training_rows_and_are_unseen(tmp_path):
    settings = {"network": "mlp:hidden=8", "max_epochs": 1, "threads": 1, "held_out": 0.1}
    outcome = start(TrainConfig(data="sine:n=100,n_test=30", **settings), tmp_path / "run", NoDisplay())
    every = encode_run(Run.open(outcome.path, dataset=outcome.dataset), "all rows")
    assert len(every.rows) == 130
    assert every.unseen[100:].all()
    assert every.unseen[:100].sum() == 10
    np.testing.assert_array_equal(every.rows.x[100:], outcome.dataset.test.x)
    frequency = outcome.dataset.test.factors["frequency"]
    np.testing.assert_array_equal(every.factors["frequency"][100:], frequency)


def test_other_data_is_all_unseen(tmp_path):
    outcome = trained(tmp_path, DATA["table"])
    np.save(tmp_path / "other.npy", DATA["table"][:20] + 1)
    other = encode_run(Run.open(outcome.path, str(tmp_path / "other.npy")))
    assert other.unseen is None
    assert (len(other.rows), other.split) == (20, "all rows")


def test_a_report_of_one_run_has_no_plane_with_one_point(tmp_path):
    from wiseale.evaluation.evaluate import evaluate

    outcome = trained(tmp_path, DATA["table"], held_out=0.2)
    evaluate(outcome.path, nll_samples=0)
    result = Result(System("wise_ale", "wise_ale"), 0, outcome.path)
    made = draw_all(tmp_path / "figures", [result])
    names = {one.path.stem for one in made}
    assert "rate_distortion" not in names
    assert {"correlations", "posteriors", *STANDARD} <= names
    assert all(one.path.with_suffix(".svg").exists() for one in made)
    twice = draw_all(tmp_path / "both", [result, replace(result, system=System("again", "aevb"))])
    assert "rate_distortion" in {one.path.stem for one in twice}
