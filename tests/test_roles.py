"""What every setting is for, written out: a new one must be added here, and what follows from its role is checked."""

import dataclasses
import pkgutil
from importlib import import_module

import pytest

import wiseale
from wiseale import registry
from wiseale.config import ROLES, SEARCHED, SPECS, Settings, TrainConfig
from wiseale.report.tables import _COMMON
from wiseale.runs.record import DECIDING, FREE
from wiseale.training.settings import NAMES, RunSettings

QUESTION = "science, given"
"""It decides the result and is part of the question: not searched."""

TRAINING = {
    "data": QUESTION,
    "objective": "science",
    "latent_dim": "science",
    "network": "science",
    "likelihood": "science",
    "columns": QUESTION,
    "missing": QUESTION,
    "unseen": QUESTION,
    "batch_size": "science",
    "max_epochs": "science",
    "lr": "science",
    "lr_schedule": "science",
    "prior_warmup": "science",
    "recipe": "science",
    "max_grad_norm": "science",
    "patience": "science",
    "held_out": QUESTION,
    "held_out_most": QUESTION,
    "watch_every": "science",
    "init_from": QUESTION,
    "seed": QUESTION,
    "processes": "machine",
    "threads": "machine",
    "device": "machine",
    "precision": "science",
    "data_root": "machine",
    "checkpoint_every": "machine",
    "logger": "output",
    "figures": "output",
}

PARTS = {
    "Aae": "encoder critic_layers critic_width critic_lr encoder_lr gradient_penalty",
    "Aevb": "",
    "BetaTcVae": "beta",
    "BetaVae": "beta",
    "DipVae": "kind lambda_od lambda_d",
    "Gmvae": "clusters w_dim hidden prior_hidden minimum_z_prior",
    "InfoVae": "alpha lambda_mmd",
    "SinkhornAe": "prior_weight debiased epsilon iterations encoder",
    "WaeGan": "prior_weight encoder critic_layers critic_width critic_lr gradient_penalty add_norm",
    "WaeMmd": "prior_weight encoder",
    "WiseAle": "estimator prior_weight",
    "WiseAleExact": "estimator prior_weight reconstruction",
    "Conv1d": "sigma_activation sigma_min init start channels kernel hidden",
    "Conv2d": "sigma_activation sigma_min init start channels kernel hidden",
    "Mlp": "sigma_activation sigma_min init start hidden",
    "PaperCeleba": "sigma_activation sigma_min init width",
    "PaperMnist": "sigma_activation sigma_min init",
    "PaperSine": "sigma_activation sigma_min init",
    "BernoulliSettings": "",
    "GaussianSettings": "x_sigma x_sigma_min",
    "TableSettings": "x_sigma_min hidden",
    "Constant": "",
    "Cosine": "final",
    "Step": "epochs factor",
    "Celeba": "crop size channels skip_bad folder",
    "FashionMnist": "binarize n",
    "Mnist": "binarize n",
    "Sine": "n n_test noise length max_frequency max_amplitude seed",
    "Teapot": "n seed",
    "CsvLogger": "",
    "MlflowLogger": "experiment uri",
    "TensorBoardLogger": "",
    "WandbLogger": "project",
    "ArrayFile": "array labels channels missing standardize",
    "CsvFile": "columns drop labels kinds missing unseen standardize separator header decimal",
    "ParquetFile": "columns drop labels kinds missing unseen standardize",
    "ArrowFile": "columns drop labels kinds missing unseen standardize",
    "ImageFolder": "crop size channels skip_bad labels",
}
"""Parts of specs, by class: each has the role of the training setting that holds the spec."""

BASES = {
    *("Settings", "TrainConfig", "NetworkSettings", "GenericNetwork", "_Conv", "SampleDistance", "Objective"),
    *("LikelihoodSettings", "Logger", "TableFile", "ImageSettings"),
}
"""Classes of settings that no spec names."""


def role_of(item):
    return f"{item.metadata['role']}, given" if item.metadata["given"] else item.metadata["role"]


def test_every_training_setting_says_what_it_is_for():
    assert {item.name: role_of(item) for item in dataclasses.fields(TrainConfig)} == TRAINING


def registered():
    holders = {kind: name for name, kind in SPECS.items()} | {"dataset": "data"}
    for kind in holders:
        for name in registry.names(kind):
            yield pytest.param(registry.lookup(kind, name), ROLES[holders[kind]], id=f"{kind} {name}")


@pytest.mark.parametrize(("cls", "role"), [*registered()])
def test_every_part_of_a_spec_has_the_role_of_what_holds_it(cls, role):
    parts = dataclasses.fields(cls)
    assert {part.metadata["role"] for part in parts} <= {None, role}
    assert all(part.metadata["help"] for part in parts)


def test_what_holds_a_spec_names_a_registered_kind():
    assert set(SPECS.values()) == set(registry.REGISTRIES) - {"dataset", "experiment"}


def test_a_resolved_run_has_every_setting_but_those_that_became_part_of_its_data():
    assert {item.name for item in dataclasses.fields(RunSettings)} == {*NAMES}
    assert list(NAMES) == [name for name in TRAINING if name not in ("columns", "missing", "unseen")]
    absent = {item.name for item in dataclasses.fields(RunSettings) if "None" in str(item.type)}
    assert absent == {"max_grad_norm", "patience", "init_from", "logger"}


def test_a_resumption_may_change_where_things_are_and_nothing_else():
    machine = ("data", "processes", "threads", "device", "data_root", "checkpoint_every", "logger", "figures")
    assert machine == FREE
    assert {*DECIDING, *FREE} == {item.name for item in dataclasses.fields(RunSettings)}
    assert not {*DECIDING} & {*FREE}


def test_a_search_varies_the_answer():
    assert set(SEARCHED) == {name for name, role in TRAINING.items() if role == "science"}


def test_reports_name_every_setting_that_decides_a_result():
    beside = {"objective", "seed"}  # in a table of their own
    assert {*_COMMON, *beside} == {*DECIDING, "data"}


def test_every_class_of_settings_is_listed():
    """Also those that are in no registry, such as readers of files."""
    for module in pkgutil.walk_packages(wiseale.__path__, "wiseale."):
        if module.name.split(".")[1] in ("data", "likelihoods", "networks", "objectives", "training", "runs", "paper"):
            import_module(module.name)

    def subclasses(cls):
        return {cls, *(below for sub in cls.__subclasses__() for below in subclasses(sub))}

    ours = [cls for cls in subclasses(Settings) if cls.__module__.startswith("wiseale.")]
    found = {cls.__name__ for cls in ours}
    assert found - BASES == {*PARTS}
    for cls in ours:
        name = cls.__name__
        if name in PARTS:
            assert PARTS[name].split() == [part.name for part in dataclasses.fields(cls)], name
