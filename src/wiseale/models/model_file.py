"""A trained model as a directory: weights, ``config.json`` and checksums. Loading runs no code from it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wiseale import config
from wiseale.errors import ModelFileError, WiseAleError
from wiseale.models.tensor_files import TensorHeader, header_of, misfit, read_header, read_tensors, write_tensors
from wiseale.networks.model import Model, seeded
from wiseale.objectives import make_objective
from wiseale.platform.atomic_files import MANIFEST, read_manifest, verify_file, write_directory
from wiseale.platform.json_files import parse_table, read_text, record, to_json
from wiseale.platform.machine import require_memory
from wiseale.spaces import Space, read_space

FORMAT, VERSION = "wiseale model", 1

WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "README.md"
CARD_MARK = "library_name: wiseale"
"""The second line of a model card."""

_MAX_CONFIG_BYTES = 16 << 20
_MAX_SPEC = 10_000  # characters of a network's, likelihood's or objective's settings
_MAX_CODES = 1 << 31


@dataclass(frozen=True)
class ModelConfig:
    """The settings a model is built from; specs are complete, so that changed defaults do not change saved models.

    Attributes:
        space: what one row is.
        data_fingerprint: of what it was trained on; empty where that is not known.
    """

    network: str
    likelihood: str
    objective: str
    space: Space
    latent_dim: int
    data_fingerprint: str = ""

    @property
    def stochastic(self) -> bool:
        """Whether the encoder is stochastic."""
        return make_objective(self.objective).stochastic

    def build(self) -> Model:
        """The model with fresh weights."""
        network, likelihood = config.build("network", self.network), config.build("likelihood", self.likelihood)
        return Model(network, self.space, self.latent_dim, likelihood, self.stochastic)

    def check(self) -> None:
        """ValueError where a value is of the right type and yet impossible."""
        for name in ("network", "likelihood", "objective"):
            if len(getattr(self, name)) > _MAX_SPEC:
                raise ValueError(f"{name} is too long")
        if not 1 <= self.latent_dim <= _MAX_CODES:
            raise ValueError(f"latent_dim {self.latent_dim} is impossible")

    def to_values(self) -> dict[str, Any]:
        """As JSON holds it."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {"format": FORMAT, "version": VERSION, **values, "space": self.space.to_values()}

    def headers(self) -> dict[str, TensorHeader]:
        """Names, types and shapes of the model's tensors, found without taking memory for them."""
        try:
            with torch.device("meta"), seeded(0):
                model = self.build()
                model.prior = self.build_prior(model)
        except (RuntimeError, TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(f"no such network can be built: {str(error).splitlines()[0]}") from None
        return {name: header_of(tensor) for name, tensor in model.state_dict().items()}

    def bytes(self) -> int:
        """Memory that the weights take."""
        return sum(header.bytes for header in self.headers().values())

    def build_prior(self, model: Model) -> nn.Module | None:
        """The prior of the model's objective with fresh weights; None where it is N(0, I)."""
        objective = make_objective(self.objective)
        if not objective.own_prior:
            return None
        prior = objective.build(self.space, self.latent_dim)
        assert isinstance(prior, nn.Module)
        return prior


def save_model(
    directory: Path,
    model: Model,
    model_config: ModelConfig,
    beside: Mapping[str, str] | None = None,
    *,
    half: bool = False,
    fill_further: Callable[[Path], None] | None = None,
) -> None:
    """Write a model directory, at once; ``beside`` are further text files by name, such as its card.

    ``half`` stores weights in float16; they are read as float32. ``fill_further`` writes files of its own into the
    directory, which the manifest lists as well.
    """

    def fill(temporary: Path) -> None:
        state = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
        if half:
            state = {name: t.half() if t.dtype == torch.float32 else t for name, t in state.items()}
        if fill_further is not None:
            fill_further(temporary)
        write_tensors(temporary / WEIGHTS, state)
        (temporary / CONFIG).write_text(to_json(model_config.to_values()), encoding="utf-8")

    write_directory(directory, fill, beside)


def refuse_to_replace(directory: Path, files: Collection[str] = (WEIGHTS, CONFIG)) -> None:
    """An error if ``directory`` holds anything but an earlier version of these files and their card."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise ModelFileError(f"{directory} exists and is not a directory: choose another place")
    known = {*files, MANIFEST, *([CARD] if _is_card(directory / CARD) else [])}
    foreign = sorted(path.name for path in directory.iterdir() if path.name not in known or path.is_dir())
    if foreign:
        raise ModelFileError(f"{directory} exists and holds other things ({foreign[0]}): choose another directory")


def _is_card(path: Path) -> bool:
    """Whether a README.md is a model card that wiseale wrote, and not the user's own."""
    try:
        return CARD_MARK in read_text(path).splitlines()[:2]
    except (OSError, ValueError):
        return False


def model_directory(path: Path) -> Path:
    """The model directory that a path means: itself, or the one inside a finished run."""
    directory = path / "model" if (path / "model").is_dir() else path
    if not directory.is_dir():
        raise ModelFileError(f"no model at {directory}: give a model directory, or a run that has finished")
    return directory


def model_digest(directory: Path) -> str:
    """SHA-256 of a model's manifest.json, which holds the checksums of its other files: it stands for the whole."""
    return hashlib.sha256(read_text(directory / MANIFEST).encode()).hexdigest()


def load_model(path: Path, sha256: str | None = None) -> tuple[Model, ModelConfig]:
    """Read a model or run directory, which may come from strangers.

    Checksums, schema, names, shapes and sizes are checked before memory is taken; weights must be finite. ``sha256`` is
    the digest the model must have, see :func:`model_digest`.
    """
    directory = model_directory(path)
    sums = read_manifest(directory, (WEIGHTS, CONFIG))
    if sha256 is not None and sha256.lower() != (found := model_digest(directory)):
        raise ModelFileError(f"{directory} is not the model asked for: its manifest.json has the SHA-256 {found}")
    verify_file(directory, CONFIG, sums)
    model_config = read_config(directory / CONFIG)
    try:
        wanted = model_config.headers()
        needed = (directory / WEIGHTS).stat().st_size if (directory / WEIGHTS).is_file() else 0
        require_memory(2 * needed, str(directory / WEIGHTS), "load it on a larger machine")
        for name in sums:
            verify_file(directory, name, sums)
        given = read_header(directory / WEIGHTS)
        if problem := misfit(given, wanted):
            raise ModelFileError(f"{directory}: the weights do not fit the network in config.json: {problem}")
        with seeded(0):
            model = model_config.build()
            model.prior = model_config.build_prior(model)
        state = read_tensors(directory / WEIGHTS)
        _refuse_useless(directory / WEIGHTS, state)
        model.load_state_dict(state)
    except ModelFileError:
        raise
    except WiseAleError as error:
        raise ModelFileError(f"{directory / CONFIG}: {error}") from None
    return model.eval(), model_config


def _refuse_useless(path: Path, state: Mapping[str, Tensor]) -> None:
    """Weights with which every code would be NaN."""
    for name, tensor in state.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise ModelFileError(f"{path} holds NaN or infinity in {name}: no code can be computed; train it again")
    if "units.scale" in state and not bool((state["units.scale"] > 0).all()):
        raise ModelFileError(f"{path} holds a scale of 0 or below in units.scale: no code can be computed")


def read_config(path: Path) -> ModelConfig:
    """The settings in a model's config.json."""
    try:
        settings = parse_table(read_text(path, _MAX_CONFIG_BYTES))
        kind, version = settings.pop("format"), settings.pop("version")
    except (OSError, ValueError, KeyError):
        raise ModelFileError(f"{path} does not describe a wiseale model") from None
    if kind != FORMAT:
        raise ModelFileError(f"{path} describes a {str(kind)[:40]!r}, not a {FORMAT!r}")
    if type(version) is not int or version != VERSION:
        raise ModelFileError(
            f"{path} has version {str(version)[:40]}, this wiseale reads version {VERSION}: upgrade it"
        )
    try:
        model_config = record(ModelConfig, {**settings, "space": read_space(settings.get("space"))})
        model_config.check()
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"{path} does not follow the schema of version {version}: {error}") from None
    return model_config
