"""A trained model as a directory: weights, ``config.json`` and checksums. Loading runs no code from it."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from wiseale import config, registry
from wiseale.data.dataset import Reading
from wiseale.data.tables.schema import TableSchema
from wiseale.errors import ModelFileError, WiseAleError
from wiseale.networks.model import GenericNetwork, Model, Standardizer, seeded
from wiseale.objectives import make_objective
from wiseale.platform.atomic_files import MANIFEST, to_json, verify_directory, write_directory

VERSION = 3
"""Version 1 had no linear path beside the network; it is read as ``start=none``. Version 2 had no kinds of columns."""
_FILES = {"model.safetensors", "config.json"}


@dataclass(frozen=True)
class ModelConfig:
    """The settings a model is built from; specs are complete, so that changed defaults do not change saved models.

    Attributes:
        standardized: whether the model holds the mean and scale of its data.
        stochastic: whether its encoder is stochastic.
        reading: how stored numbers become x.
        columns: names of a table's features, in order; empty where they have none.
        data_fingerprint: of what it was trained on; empty where that is not known.
        table: kinds of a table's columns, where they are not numbers alone.
    """

    network: str
    likelihood: str
    objective: str
    x_shape: tuple[int, ...]
    latent_dim: int
    standardized: bool = False
    stochastic: bool = True
    reading: Reading = "values"
    columns: tuple[str, ...] = ()
    data_fingerprint: str = ""
    table: TableSchema | None = None

    def build(self) -> Model:
        """The model with fresh weights."""
        network = config.build("network", self.network)
        family = config.build("likelihood", self.likelihood)
        model = Model(network, self.x_shape, self.latent_dim, family, self.stochastic)
        if self.standardized:
            # Placeholders: the true shapes are only known to the weights.
            model.units = Standardizer(torch.zeros(()), torch.ones(()))
        return model

    def build_prior(self) -> nn.Module | None:
        """The objective's own prior with fresh weights; None where the prior is N(0, I)."""
        objective = make_objective(self.objective)
        if not objective.own_prior:
            return None
        prior = objective.build(self.x_shape, self.latent_dim)
        assert isinstance(prior, nn.Module)
        return prior


def save_model(directory: Path, model: Model, model_config: ModelConfig) -> None:
    """Write a model directory, at once."""

    def fill(temporary: Path) -> None:
        state = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
        save_file(state, temporary / "model.safetensors")
        settings = {"format": "wiseale model", "version": VERSION, **asdict(model_config)}
        (temporary / "config.json").write_text(to_json(settings), encoding="utf-8")

    write_directory(directory, fill)


def refuse_to_replace(directory: Path, files: Collection[str] = _FILES) -> None:
    """An error if ``directory`` holds anything but an earlier version of these files."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise ModelFileError(f"{directory} exists and is not a directory: choose another place")
    known = {*files, MANIFEST, "README.md"}
    foreign = sorted(path.name for path in directory.iterdir() if path.name not in known or path.is_dir())
    if foreign:
        raise ModelFileError(f"{directory} exists and holds other things ({foreign[0]}): choose another directory")


def load_model(directory: Path) -> tuple[Model, ModelConfig]:
    """Read a model or run directory; checksums, schema, names and shapes are checked before anything is used."""
    if (directory / "model").is_dir():
        directory = directory / "model"
    if not directory.is_dir():
        raise ModelFileError(f"no model at {directory}: give a model directory, or a run that has finished")
    verify_directory(directory)
    model_config = _read_config(directory / "config.json")
    try:
        with seeded(0):
            model = model_config.build()
            model.prior = model_config.build_prior()
        state = load_file(directory / "model.safetensors")
        if model_config.standardized:
            model.units = Standardizer(state["units.mean"], state["units.scale"])
        model.load_state_dict(state)
    except (SafetensorError, OSError) as error:
        raise ModelFileError(f"{directory / 'model.safetensors'} cannot be read: {error}") from None
    except (RuntimeError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise ModelFileError(f"{directory}: the weights do not fit the network in config.json: {reason}") from None
    except WiseAleError as error:
        raise ModelFileError(f"{directory / 'config.json'}: {error}") from None
    return model.eval(), model_config


def _read_config(path: Path) -> ModelConfig:
    try:
        settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        kind, version = settings.pop("format"), settings.pop("version")
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        raise ModelFileError(f"{path} does not describe a wiseale model") from None
    if kind != "wiseale model":
        raise ModelFileError(f"{path} describes a {kind!r}, not a 'wiseale model'")
    if version not in range(1, VERSION + 1):
        known = f"this wiseale reads versions 1 to {VERSION}: upgrade wiseale"
        raise ModelFileError(f"{path} has version {version!r}, {known}")
    if version == 1 and isinstance(settings.get("network"), str):
        settings["network"] = _without_linear_path(settings["network"])
    try:
        if settings.get("table") is not None:
            settings["table"] = TableSchema.from_values(settings["table"])
        model_config = ModelConfig(**settings)
        shape, columns = tuple(int(n) for n in model_config.x_shape), tuple(model_config.columns)
        words = (
            model_config.network,
            model_config.likelihood,
            model_config.objective,
            model_config.data_fingerprint,
            *columns,
        )
        wrong = not all(isinstance(word, str) for word in words) or model_config.reading not in get_args(Reading)
        if wrong or not shape or min(shape) < 1 or int(model_config.latent_dim) < 1:
            raise ValueError
        table = model_config.table
        if (columns and shape != (len(columns),)) or (table is not None and shape != (len(table.columns),)):
            raise ValueError
    except (TypeError, ValueError, KeyError, AttributeError):
        raise ModelFileError(f"{path} does not follow the schema of version {version}") from None
    return ModelConfig(**{**settings, "x_shape": shape, "columns": columns})


def _without_linear_path(network: str) -> str:
    """The spec of a network of version 1, which has none."""
    name = network.partition(":")[0]
    if name in registry.names("network") and issubclass(registry.lookup("network", name), GenericNetwork):
        return f"{network},start=none" if ":" in network else f"{network}:start=none"
    return network
