"""What can be named, from systems to loggers: the ``module:attribute`` of each name."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from typing import Any

from wiseale.errors import ConfigError

OBJECTIVES = {
    "aae": "wiseale.objectives.adversarial:Aae",
    "aevb": "wiseale.objectives.aevb:Aevb",
    "beta_tc_vae": "wiseale.objectives.beta_tc_vae:BetaTcVae",
    "beta_vae": "wiseale.objectives.aevb:BetaVae",
    "dip_vae": "wiseale.objectives.dip_vae:DipVae",
    "gmvae": "wiseale.objectives.gmvae:Gmvae",
    "info_vae": "wiseale.objectives.info_vae:InfoVae",
    "sinkhorn_ae": "wiseale.objectives.distances:SinkhornAe",
    "wae_gan": "wiseale.objectives.adversarial:WaeGan",
    "wae_mmd": "wiseale.objectives.distances:WaeMmd",
    "wise_ale": "wiseale.objectives.wise_ale:WiseAle",
    "wise_ale_exact": "wiseale.objectives.wise_ale:WiseAleExact",
}

NETWORKS = {
    "conv1d": "wiseale.networks.conv:Conv1d",
    "conv2d": "wiseale.networks.conv:Conv2d",
    "mlp": "wiseale.networks.mlp:Mlp",
    "paper_celeba": "wiseale.networks.paper:PaperCeleba",
    "paper_mnist": "wiseale.networks.paper:PaperMnist",
    "paper_sine": "wiseale.networks.paper:PaperSine",
}

LIKELIHOODS = {
    "bernoulli": "wiseale.likelihoods.bernoulli:BernoulliSettings",
    "gaussian": "wiseale.likelihoods.gaussian:GaussianSettings",
    "table": "wiseale.likelihoods.mixed:TableSettings",
}

DATASETS = {
    "celeba": "wiseale.data.sets.celeba:Celeba",
    "fashion_mnist": "wiseale.data.sets.mnist:FashionMnist",
    "mnist": "wiseale.data.sets.mnist:Mnist",
    "sine": "wiseale.data.sets.sine:Sine",
    "teapot": "wiseale.paper.teapot:Teapot",
}

SCHEDULES = {
    "constant": "wiseale.training.settings:Constant",
    "cosine": "wiseale.training.settings:Cosine",
    "step": "wiseale.training.settings:Step",
}

LOGGERS = {
    "csv": "wiseale.runs.loggers:CsvLogger",
    "mlflow": "wiseale.runs.loggers:MlflowLogger",
    "tensorboard": "wiseale.runs.loggers:TensorBoardLogger",
    "wandb": "wiseale.runs.loggers:WandbLogger",
}

EXPERIMENTS = {  # in the order `wiseale reproduce all` runs and reports them
    "sine": "wiseale.paper.experiments:SINE",
    "mnist": "wiseale.paper.experiments:MNIST",
    "celeba": "wiseale.paper.experiments:CELEBA",
    "teapot": "wiseale.paper.experiments:TEAPOT",
}

REGISTRIES = {
    "objective": OBJECTIVES,
    "network": NETWORKS,
    "likelihood": LIKELIHOODS,
    "dataset": DATASETS,
    "lr schedule": SCHEDULES,
    "logger": LOGGERS,
    "experiment": EXPERIMENTS,
}


OTHER_NAMES = {
    "objective": {
        "ae": "",
        "autoencoder": "",
        "gan": "",
        "vqvae": "",
        "adversarialautoencoder": "aae",
        "betatcvae": "beta_tc_vae",
        "btcvae": "beta_tc_vae",
        "gaussianmixturevae": "gmvae",
        "sinkhornautoencoder": "sinkhorn_ae",
        "tcvae": "beta_tc_vae",
        "vae": "aevb",
        "wae": "wae_mmd",
        "βvae": "beta_vae",
        "βtcvae": "beta_tc_vae",
    },
    "network": {"dense": "mlp", "fc": "mlp"},
    "likelihood": {"normal": "gaussian"},
}
"""What others call the same thing, in small letters and digits alone; empty for what looks alike and is not here."""


def register(kind: str, name: str, cls: type) -> None:
    """Make a class of your own known under a name in this process, for ``AutoEncoder``, specs and ``load``.

    The class stands at the top level of a module: ``register("objective", "free_bits", FreeBits)``.
    """
    path, known = f"{cls.__module__}:{cls.__qualname__}", REGISTRIES[kind]
    if "<locals>" in path:
        raise ConfigError(f"{cls.__name__} is defined inside a function: move it to the top level of its module")
    if known.setdefault(name, path) != path:
        raise ConfigError(f"the {kind} {name!r} exists already ({known[name]}): choose another name")


def names(kind: str) -> list[str]:
    """The registered names of a kind (``"objective"``, ``"network"``, …), sorted."""
    return sorted(REGISTRIES[kind])


def lookup(kind: str, name: str) -> Any:
    """Import what is registered under a name; an unknown name is an error that lists the known ones and the nearest."""
    known = REGISTRIES[kind]
    if name not in known:
        same = _known_as(kind, name)
        hint = did_you_mean(name, known) if same is None else f": it is called {same!r} here" if same else ""
        raise ConfigError(f"unknown {kind} {name!r}{hint} (known: {', '.join(sorted(known))})")
    module, _, attribute = known[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def _known_as(kind: str, name: str) -> str | None:
    """The known name of what others call so: ``beta_vae`` for ``beta-VAE``; empty where there is no such thing here."""
    plain = {_letters(known): known for known in REGISTRIES[kind]} | OTHER_NAMES.get(kind, {})
    return plain.get(_letters(name))


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``": did you mean 'aevb'?"``, or nothing where no known name is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f": did you mean {near[0]!r}?" if near else ""
