"""A trained decoder as data: a description of its layers and their weights, which ``static/decoder.js`` runs in a page.

A description is JSON: ``latent_dim``, ``x_shape``, and ``decoder``, a tree of nodes. Each node takes and returns a flat
array, channel after channel, and names its weights by their offset in one array of float32. Kinds of nodes:

==================== =====================================================================================
``sequence``         ``nodes`` one after the other
``sum``              the sum of what the ``branches`` return for the same input
``linear``           (outputs, inputs) ``weight`` and ``bias``
``transposed_conv``  (inputs, *kernel, outputs) ``weight`` and ``bias``, cropped by ``crop`` on the left, to ``out``
``relu``, ``sigmoid``
``links``            the link functions of a table's columns: ``parts``, each ``link`` (sigmoid, softmax or exp, which
                     is of at most ``most``), ``start`` and ``width``
``scale_channels``   ``scale`` and ``shift`` of each channel: batch normalisation with fixed statistics
``units``            from the network's units to the user's: ``scale``, and the mean as ``mean`` + ``mean_rest``
==================== =====================================================================================
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wiseale.errors import ConfigError
from wiseale.likelihoods import MixedOutput
from wiseale.likelihoods.columns import HIGHEST_LOG_RATE
from wiseale.models.inference import Codec
from wiseale.networks.layers import Pointwise, SameConvTranspose
from wiseale.networks.model import Model
from wiseale.spaces import MixedSpace
from wiseale.spaces.columns import COUNTS
from wiseale.spaces.units import Affine

Node = dict[str, Any]

MAX_MULTIPLY_ADDS = 20_000_000
"""Above this many multiply-adds for one code, a page answers from a grid of decoded codes instead."""


class NoDescriptionError(ConfigError):
    """The decoder has a layer, or the model a likelihood, that decoder.js does not know."""


class _Weights:
    """All weights, one behind the other."""

    def __init__(self) -> None:
        self._parts: list[Tensor] = []
        self._length = 0

    def add(self, values: Tensor) -> int:
        """Append the values and return the offset of the first."""
        offset = self._length
        self._parts.append(values.detach().cpu().float().flatten())
        self._length += values.numel()
        return offset

    def to_bytes(self) -> bytes:
        """Little-endian float32."""
        return torch.cat(self._parts).numpy().astype(np.dtype("<f4")).tobytes()


def describe(codec: Codec) -> tuple[dict[str, Any], bytes]:
    """The description of a model's decoder, from a code to E[x|z] in the user's units, and its weights.

    Raises:
        NoDescriptionError: for a layer or likelihood that decoder.js cannot run.
    """
    model, weights = codec.model, _Weights()
    nodes = [_output(model, weights), *_mean(model), *_units(codec, weights)]
    description = {
        "latent_dim": model.latent_dim,
        "x_shape": list(codec.space.output_shape),
        "decoder": {"kind": "sequence", "nodes": nodes},
    }
    return description, weights.to_bytes()


def multiply_adds(description: dict[str, Any]) -> int:
    """Multiplications with a weight needed to decode one code; cropped positions are counted too."""
    return _multiply_adds(description["decoder"])


def _multiply_adds(node: Node) -> int:
    match node["kind"]:
        case "sequence" | "sum":
            return sum(_multiply_adds(part) for part in node.get("nodes") or node["branches"])
        case "linear":
            return int(node["inputs"] * node["outputs"])
        case "transposed_conv":
            return int(node["inputs"] * node["outputs"] * math.prod(node["kernel"]) * math.prod(node["size"]))
        case _:
            return 0


def _output(model: Model, weights: _Weights) -> Node:
    """The network's output, to which a linear path, if there is one, is added."""
    network = _node(model.decoder, weights)
    if model.linear is None:
        return network
    return {"kind": "sum", "branches": [network, _node(model.linear.decoder, weights)]}


def _node(module: nn.Module, weights: _Weights) -> Node:
    """The node of one module of a decoder, its weights appended."""
    match module:
        case nn.Sequential():
            shapes = (nn.Unflatten, nn.Flatten, nn.Identity)  # arrays are flat: a change of shape moves nothing
            return {"kind": "sequence", "nodes": [_node(m, weights) for m in module if not isinstance(m, shapes)]}
        case nn.Linear():
            return _linear(module.weight, module.bias, weights)
        case Pointwise():
            return _linear(module.weight[:, :, 0], module.bias, weights)
        case SameConvTranspose():
            return _transposed(module, weights)
        case nn.BatchNorm1d() | nn.BatchNorm2d():
            return _batch_norm(module, weights)
        case nn.ReLU():
            return {"kind": "relu"}
        case _:
            raise NoDescriptionError(f"the decoder's layer {type(module).__name__} cannot be run inside a page")


def _linear(weight: Tensor, bias: Tensor | None, weights: _Weights) -> Node:
    outputs, inputs = weight.shape
    return {
        "kind": "linear",
        "inputs": inputs,
        "outputs": outputs,
        "weight": weights.add(weight),
        "bias": weights.add(weight.new_zeros(outputs) if bias is None else bias),
    }


def _transposed(module: SameConvTranspose, weights: _Weights) -> Node:
    layer = module.convolution
    assert layer.bias is not None
    # One filter position's outputs lie together: the innermost loop of decoder.js runs over them.
    kernel_last = layer.weight.movedim(1, -1)
    return {
        "kind": "transposed_conv",
        "inputs": layer.in_channels,
        "outputs": layer.out_channels,
        "size": list(module.size),
        "out": list(module.out),
        "kernel": list(layer.kernel_size),
        "stride": layer.stride[0],
        "crop": list(module.padding),
        "weight": weights.add(kernel_last),
        "bias": weights.add(layer.bias),
    }


def _batch_norm(module: nn.BatchNorm1d | nn.BatchNorm2d, weights: _Weights) -> Node:
    """(x − mean) / √(var + eps) · weight + bias, with the running statistics, as one scale and one shift."""
    if module.running_mean is None or module.running_var is None:
        raise NoDescriptionError("batch normalisation without running statistics cannot be run inside a page")
    scale = (module.running_var.cpu().double() + module.eps).rsqrt()  # Apple's GPUs have no float64
    if module.weight is not None:
        scale = scale * module.weight.cpu().double()
    shift = -module.running_mean.cpu().double() * scale
    if module.bias is not None:
        shift = shift + module.bias.cpu().double()
    return {
        "kind": "scale_channels",
        "channels": module.num_features,
        "scale": weights.add(scale),
        "shift": weights.add(shift),
    }


def _mean(model: Model) -> list[Node]:
    """E[x|z] from the decoder's output."""
    layer = model.likelihood
    if isinstance(layer, MixedOutput):
        return [_links(layer.space)]
    if layer.link is None:
        raise NoDescriptionError(f"the likelihood {type(layer).__name__} cannot be run inside a page")
    return [] if layer.link == "identity" else [{"kind": layer.link}]


def _links(space: MixedSpace) -> Node:
    """From the decoder's output to means, probabilities and rates, entry by entry."""
    links = {"binary": "sigmoid", "category": "softmax", **dict.fromkeys(COUNTS, "exp")}
    parts = [
        {"link": links[column.kind], "start": start, "width": column.width}
        for column, start in zip(space.columns, space.starts, strict=True)
        if column.kind in links
    ]
    return {"kind": "links", "parts": parts, "most": HIGHEST_LOG_RATE}


def _units(codec: Codec, weights: _Weights) -> list[Node]:
    """The inverse of the standardisation; the mean in two parts, so that a large offset is added without loss."""
    units, shape = codec.entry_units, codec.space.output_shape
    if not isinstance(units, Affine):
        return []
    mean, scale = (
        values.double() if values.numel() == 1 else values.double().expand(shape)
        for values in (units.mean, units.scale)
    )
    if mean.numel() != scale.numel():
        mean, scale = mean.expand(shape), scale.expand(shape)
    high = mean.float()
    return [
        {
            "kind": "units",
            "entries": mean.numel(),
            "scale": weights.add(scale),
            "mean": weights.add(high),
            "mean_rest": weights.add(mean - high.double()),
        }
    ]
