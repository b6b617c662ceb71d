"""A trained model as a directory: weights, ``config.json`` and checksums. Loading runs no code from it."""

from __future__ import annotations

import errno
import hashlib
import math
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from wiseale import config
from wiseale.errors import ModelFileError, WiseAleError
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

_MAX_BYTES = 16 << 20  # of config.json, and of a header of tensors
_MAX_SPEC = 10_000  # characters of a network's, likelihood's or objective's settings
_MAX_CODES = 1 << 31
_SMALL = 16 << 20  # bytes of tensors
_SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
_FLOATS = {"F64", "F32", "F16", "BF16"}


@dataclass(frozen=True)
class TensorHeader:
    """What a file says of one tensor; ``dtype`` as safetensors spells it (``"F32"``)."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Memory that the numbers take."""
        return _SIZES[self.dtype] * math.prod(self.shape)


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a safetensors file that the same people may read as the files beside it; OSError where it cannot be."""
    small = sum(tensor.nbytes for tensor in tensors.values()) < _SMALL
    try:
        if small and all(tensor.dtype != torch.bfloat16 for tensor in tensors.values()):
            # The same bytes in a third of the time, at the cost of a copy.
            save_arrays({name: tensor.numpy() for name, tensor in tensors.items()}, path)
        else:
            save_file(dict(tensors), path)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        code = int(number[1]) if number else errno.EIO
        raise OSError(code, os.strerror(code), str(path)) from None
    if hasattr(os, "geteuid"):
        mask = os.umask(0o077)  # which can only be read by setting it
        os.umask(mask)
        path.chmod(0o666 & ~mask)  # safetensors makes files for their owner alone


def read_tensors(path: Path, device: str = "cpu") -> dict[str, Tensor]:
    """The tensors in a file."""
    try:
        return load_file(path, device=device)
    except (SafetensorError, OSError) as error:
        raise ModelFileError(f"{path} cannot be read: {error}") from None


def read_header(path: Path) -> dict[str, TensorHeader]:
    """Names, types and shapes of the tensors in a file, without reading them; the file must have their size."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > _MAX_BYTES:
                raise ValueError(f"its header would take {length:,} bytes")
            header = parse_table(file.read(length).decode("utf-8"))
            size = os.fstat(file.fileno()).st_size
        header.pop("__metadata__", None)
        headers = {name: _entry(values) for name, values in header.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} cannot be read: not a safetensors file ({error})") from None
    expected = 8 + length + sum(tensor.bytes for tensor in headers.values())
    if size != expected:
        raise ModelFileError(f"{path} cannot be read: it has {size:,} bytes where its header says {expected:,}")
    return headers


def _entry(values: object) -> TensorHeader:
    if not isinstance(values, dict) or values["dtype"] not in _SIZES or not isinstance(values["shape"], list):
        raise ValueError("its header is malformed")
    shape = tuple(values["shape"])
    if any(type(length) is not int or not 0 <= length < 1 << 40 for length in shape) or len(shape) > 8:
        raise ValueError("its header has an impossible shape")
    return TensorHeader(values["dtype"], shape)


def header_of(tensor: Tensor) -> TensorHeader:
    """What a file would say of this tensor."""
    name = str(tensor.dtype).removeprefix("torch.")
    kind = {"bfloat16": "BF16", "bool": "BOOL", "uint8": "U8"}.get(name) or f"{name[0].upper()}{tensor.itemsize * 8}"
    return TensorHeader(kind, tuple(tensor.shape))


def misfit(given: Mapping[str, TensorHeader], wanted: Mapping[str, TensorHeader]) -> str | None:
    """The first tensor that is missing, unknown, or of another shape or kind of number, in words; None if all fit."""
    for name in sorted(given.keys() | wanted.keys()):
        if name not in given:
            return f"{name} is missing"
        if name not in wanted:
            return f"{name} is not one of the network's"
        one, other = given[name], wanted[name]
        if one.shape != other.shape:
            return f"{name} has the shape {list(one.shape)} where the network has {list(other.shape)}"
        if one.dtype != other.dtype and not {one.dtype, other.dtype} <= _FLOATS:
            return f"{name} holds {one.dtype} where the network has {other.dtype}"
    return None


@dataclass(frozen=True)
class ModelConfig:
    """The settings a model is built from; specs are complete, so that changed defaults do not change saved models."""

    network: str
    likelihood: str
    objective: str
    space: Space
    latent_dim: int
    data_fingerprint: str = ""  # of what it was trained on, where that is known

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

    ``half`` stores weights in float16. ``fill_further`` writes files of its own, which the manifest lists as well.
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
    try:
        has_card = CARD_MARK in read_text(directory / CARD).splitlines()[:2]  # and not a README.md of the user's own
    except (OSError, ValueError):
        has_card = False
    known = {*files, MANIFEST, *([CARD] if has_card else [])}
    foreign = sorted(path.name for path in directory.iterdir() if path.name not in known or path.is_dir())
    if foreign:
        raise ModelFileError(f"{directory} exists and holds other things ({foreign[0]}): choose another directory")


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
        settings = parse_table(read_text(path, _MAX_BYTES))
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
