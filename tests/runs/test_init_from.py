"""Runs that start from another's weights, and what a finished run's model carries."""

import dataclasses
import json
import shutil

import pytest
import torch
from tests.journals import MemoryJournal

from wiseale.config import SettingError, TrainConfig
from wiseale.errors import ModelFileError
from wiseale.models.model_file import load_model
from wiseale.runs.train import resume, start

CONFIG = TrainConfig(
    data="sine:n=200,n_test=10",
    objective="aevb",
    network="mlp:hidden=12",
    latent_dim=2,
    batch_size=16,
    max_epochs=1,
    threads=1,
)


def train(out, **changes):
    start(dataclasses.replace(CONFIG, **changes), out, MemoryJournal())
    return load_model(out)[0]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "run"
    train(path, seed=7)
    return path


@pytest.mark.parametrize("part", ["", "model"])
def test_training_starts_from_the_given_weights(source, tmp_path, part):
    """With a learning rate too small to move float32, what ends is what was given; another objective may take over."""
    given = load_model(source)[0].state_dict()
    started = train(tmp_path / "run", init_from=str(source / part), lr=1e-30, objective="wise_ale_exact")
    assert all(torch.equal(value, given[name]) for name, value in started.state_dict().items())
    fresh = train(tmp_path / "fresh", lr=1e-30, objective="wise_ale_exact")
    assert not torch.equal(fresh.state_dict()["head.mu.weight"], given["head.mu.weight"])
    stored = json.loads((tmp_path / "run" / "config.json").read_text())
    assert stored["init_from"] == str(source / part)


def test_a_resumed_run_needs_the_source_only_before_its_first_checkpoint(source, tmp_path):
    moving = tmp_path / "source"
    shutil.copytree(source, moving)
    train(tmp_path / "whole", init_from=str(moving), seed=3)
    for checkpoints in (True, False):
        run = tmp_path / f"resumed-{checkpoints}"
        shutil.copytree(tmp_path / "whole", run)
        shutil.rmtree(run / "model")
        if checkpoints:
            shutil.move(moving, tmp_path / "elsewhere")
        else:
            shutil.rmtree(run / "checkpoints")
            shutil.move(tmp_path / "elsewhere", moving)
        resume(run, MemoryJournal())
        weights = [(path / "model" / "model.safetensors").read_bytes() for path in (tmp_path / "whole", run)]
        assert weights[0] == weights[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": "mlp:hidden=13"}, r"body.1.bias is \[12\] there and \[13\] here"),
        ({"latent_dim": 3}, r"decoder.0.weight is \[12, 2\] there and \[12, 3\] here"),
        ({"network": "mlp:hidden=12,12"}, "is none there and"),
    ],
)
def test_weights_that_do_not_fit_are_refused_before_anything_is_written(source, tmp_path, changes, message):
    with pytest.raises(SettingError, match=f"init_from .* does not fit this run's network: .*{message}") as error:
        train(tmp_path / "run", init_from=str(source), **changes)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_source_is_said(tmp_path):
    with pytest.raises(ModelFileError, match="no model at"):
        train(tmp_path / "run", init_from=str(tmp_path / "nothing"))


def test_a_gmvae_run_samples_its_own_prior_after_loading(tmp_path):
    model = train(tmp_path / "run", objective="gmvae:clusters=3,w_dim=2,hidden=8,prior_hidden=8")
    assert model.prior is not None
    assert model.prior.settings.clusters == 3
    z = model.sample_prior(5, torch.Generator().manual_seed(0))
    assert model.decode(z).mean.shape == (5, 1, 256)
    metrics = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])["train"]
    assert metrics["elbo"] == pytest.approx(-metrics["loss"], rel=1e-6)
    assert metrics["prior"] == pytest.approx(
        metrics["conditional_prior"] + metrics["w_prior"] + metrics["z_prior"], rel=1e-4
    )
    # Another run may start from its encoder and decoder; the prior is not the model's.
    assert train(tmp_path / "next", init_from=str(tmp_path / "run")).prior is None
