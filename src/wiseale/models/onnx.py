"""A trained model as ONNX: encoder and decoder in the user's units, checked in onnxruntime before they are kept."""

from __future__ import annotations

import copy
import importlib.util
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wiseale.errors import ConfigError, ModelFileError
from wiseale.models.inference import Codec
from wiseale.models.model_file import refuse_to_replace
from wiseale.networks.model import Model
from wiseale.platform.atomic_files import write_directory
from wiseale.spaces.units import Affine

OPSET = 18
TOLERANCE = 1e-5
BATCHES = (1, 2, 7)
"""Sizes of the batches that are checked; the exported batch is of any size."""

_EXTRA = ("onnx", "onnxscript", "onnxruntime")
_TALKATIVE = ("torch.onnx", "onnxscript", "onnx_ir")


@dataclass(frozen=True)
class Exported:
    """What was written: the ONNX operator set, the encoder's outputs, and the largest error of each file.

    Errors are against the model in float64: of mu and sigma, and of x_hat in standardised units, each relative where a
    value is above 1.
    """

    opset: int
    outputs: tuple[str, ...]
    encoder_error: float
    decoder_error: float


def export_onnx(codec: Codec, directory: Path) -> Exported:
    """Write ``encoder.onnx`` (x → mu, sigma) and ``decoder.onnx`` (z → x_hat) with their checksums.

    Both take and return float32 in the user's units; a Bernoulli decoder returns probabilities. A deterministic encoder
    has no sigma. The directory appears only if both agree with the model.
    """
    require_extra()
    if codec.space.missing:
        raise ModelFileError("ONNX holds no levels and missing cells of tables: use --format model")
    refuse_to_replace(directory, ("encoder.onnx", "decoder.onnx"))
    model = copy.deepcopy(codec.model).cpu().eval()
    outputs = ("mu", "sigma") if codec.model_config.stochastic else ("mu",)
    errors: list[float] = []

    def fill(temporary: Path) -> None:
        encoder, decoder = temporary / "encoder.onnx", temporary / "decoder.onnx"
        with _quiet():
            _write(_Encoder(model), torch.zeros(2, *model.x_shape), "x", outputs, encoder)
            _write(_Decoder(model), torch.zeros(2, model.latent_dim), "z", ("x_hat",), decoder)
        errors.extend(_verify(model, encoder, decoder))

    write_directory(directory, fill)
    return Exported(OPSET, outputs, *errors)


def require_extra() -> None:
    """An error where what ONNX needs is not installed."""
    missing = [name for name in _EXTRA if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f"ONNX export needs {' and '.join(missing)}: pip install 'wiseale[onnx]'")


class _Float32Units(nn.Module):
    """Affine units in float32: the mean in two parts, so that a large offset is subtracted without loss."""

    high: Tensor
    low: Tensor
    scale: Tensor

    def __init__(self, units: Affine) -> None:
        super().__init__()
        self.register_buffer("high", units.mean.float())
        self.register_buffer("low", (units.mean.double() - self.high.double()).float())
        self.register_buffer("scale", units.scale.float())

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.high - self.low) / self.scale

    def inverse(self, x: Tensor) -> Tensor:
        return x * self.scale + self.low + self.high


class _InFloat32(nn.Module):
    def __init__(self, model: Model) -> None:
        super().__init__()
        self.units = _Float32Units(model.units) if isinstance(model.units, Affine) else model.units
        self.model = model


class _Encoder(_InFloat32):
    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        posterior = self.model.encode(self.units(x))
        return posterior.mu if posterior.sigma is None else (posterior.mu, posterior.sigma)


class _Decoder(_InFloat32):
    def forward(self, z: Tensor) -> Tensor:
        return self.units.inverse(self.model.decode(z).mean)


def _write(module: nn.Module, example: Tensor, name: str, outputs: tuple[str, ...], path: Path) -> None:
    program = torch.onnx.export(
        module.eval(),
        (example,),
        input_names=[name],
        output_names=list(outputs),
        dynamic_shapes={name: {0: torch.export.Dim("batch")}},
        opset_version=OPSET,
        dynamo=True,
        verbose=False,
    )
    assert program is not None
    program.save(str(path))


@torch.no_grad()
def _verify(model: Model, encoder: Path, decoder: Path) -> tuple[float, float]:
    """The largest errors of both files over batches of several sizes; too large a one is refused."""
    exact = copy.deepcopy(model).double()
    run_encoder, run_decoder = _session(encoder), _session(decoder)
    draws = torch.Generator().manual_seed(0)
    units = model.units
    encoder_error = decoder_error = 0.0
    for size in BATCHES:
        x = units.inverse(torch.randn(size, *model.x_shape, generator=draws)).float()
        posterior = exact.encode(units(x.double()))
        answers = run_encoder.run(None, {"x": x.numpy()})
        expected = [part for part in (posterior.mu, posterior.sigma) if part is not None]
        encoder_error = max(encoder_error, *(_error(a, e.numpy()) for a, e in zip(answers, expected, strict=True)))

        z = torch.randn(size, model.latent_dim, generator=draws)
        x_hat = exact.decode(z.double()).mean
        (answer,) = run_decoder.run(None, {"z": z.numpy()})
        decoder_error = max(decoder_error, _error(units(torch.from_numpy(answer).double()).numpy(), x_hat.numpy()))
    # In the user's units x_hat is rounded to float32 beside its mean: this rounding is not an error of the file.
    rounding = float((units.mean.abs() / units.scale).max()) * 2.0**-23 if isinstance(units, Affine) else 0.0
    for what, error, allowed in (("encoder", encoder_error, 0.0), ("decoder", decoder_error, rounding)):
        if not error <= TOLERANCE + allowed:
            raise ModelFileError(f"the ONNX {what} is off by {error:.2g}, more than {TOLERANCE:g}: nothing was written")
    return encoder_error, decoder_error


def _error(answers: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    if answers.shape != expected.shape:
        raise ModelFileError(f"the ONNX file returns the shape {answers.shape} where {expected.shape} is expected")
    return float((np.abs(answers - expected) / np.maximum(1, np.abs(expected))).max())


def _session(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the exporter's messages, which are meant for its developers."""
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
