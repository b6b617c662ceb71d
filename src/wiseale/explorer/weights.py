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

import torch
from torch import Tensor, nn

from wiseale.errors import ConfigError
from wiseale.likelihoods import MixedOutput
from wiseale.likelihoods.columns import HIGHEST_LOG_RATE
from wiseale.models.inference import Codec
from wiseale.networks.layers import Pointwise, SameConvTranspose
from wiseale.networks.model import Model
from wiseale.spaces.columns import COUNTS
from wiseale.spaces.units import Affine

Node = dict[str, Any]

MAX_MULTIPLY_ADDS = 20_000_000
"""Above this many multiply-adds for one code, a page answers from a grid of decoded codes instead."""


class NoDescriptionError(ConfigError):
    """The decoder has a layer, or the model a likelihood, that decoder.js does not know."""


class _Weights(list[Tensor]):
    """All weights, one behind the other."""

    def add(self, values: Tensor) -> int:
        """Append the values and return the offset of the first."""
        offset = sum(part.numel() for part in self)
        self.append(values.detach().cpu().float().flatten())
        return offset


def describe(codec: Codec) -> tuple[dict[str, Any], bytes]:
    """The description of a model's decoder, from a code to E[x|z] in the user's units, and its weights.

    Raises:
        NoDescriptionError: for a layer or likelihood that decoder.js cannot run.
    """
    model, weights = codec.model, _Weights()
    output = _node(model.decoder, weights)
    if model.linear is not None:
        output = {"kind": "sum", "branches": [output, _node(model.linear.decoder, weights)]}
    nodes = [output, *_mean(model), *_units(codec, weights)]
    description = {
        "latent_dim": model.latent_dim,
        "x_shape": list(codec.space.output_shape),
        "decoder": {"kind": "sequence", "nodes": nodes},
    }
    return description, torch.cat(weights).numpy().astype("<f4").tobytes()


def multiply_adds(description: dict[str, Any]) -> int:
    """Multiplications with a weight that a node, or all of a description, needs for one code, cropped ones included."""
    node: Node = description.get("decoder", description)
    match node["kind"]:
        case "sequence" | "sum":
            return sum(multiply_adds(part) for part in node.get("nodes") or node["branches"])
        case "linear":
            return int(node["inputs"] * node["outputs"])
        case "transposed_conv":
            return int(node["inputs"] * node["outputs"] * math.prod(node["kernel"]) * math.prod(node["size"]))
        case _:
            return 0


def _node(module: nn.Module, weights: _Weights) -> Node:
    """The node of one module of a decoder, its weights appended."""
    match module:
        case nn.Sequential():
            shapes = (nn.Unflatten, nn.Flatten, nn.Identity)  # arrays are flat: a change of shape moves nothing
            return {"kind": "sequence", "nodes": [_node(m, weights) for m in module if not isinstance(m, shapes)]}
        case nn.Linear() | Pointwise():
            return _linear(module.weight.flatten(1), module.bias, weights)
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
    return {
        "kind": "transposed_conv",
        "inputs": layer.in_channels,
        "outputs": layer.out_channels,
        "size": list(module.size),
        "out": list(module.out),
        "kernel": list(layer.kernel_size),
        "stride": layer.stride[0],
        "crop": list(module.padding),
        # One filter position's outputs lie together: the innermost loop of decoder.js runs over them.
        "weight": weights.add(layer.weight.movedim(1, -1)),
        "bias": weights.add(layer.bias),
    }


def _batch_norm(module: nn.BatchNorm1d | nn.BatchNorm2d, weights: _Weights) -> Node:
    """(x − mean) / √(var + eps) · weight + bias, with the running statistics, as one scale and one shift."""
    assert module.running_mean is not None
    assert module.running_var is not None
    variance, weight, mean, bias = (  # on the CPU: Apple's GPUs have no float64
        values.cpu().double() for values in (module.running_var, module.weight, module.running_mean, module.bias)
    )
    scale = (variance + module.eps).rsqrt() * weight
    shift = bias - mean * scale
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
        links = {"binary": "sigmoid", "category": "softmax", **dict.fromkeys(COUNTS, "exp")}
        parts = [
            {"link": links[column.kind], "start": start, "width": column.width}
            for column, start in zip(layer.space.columns, layer.space.starts, strict=True)
            if column.kind in links
        ]
        return [{"kind": "links", "parts": parts, "most": HIGHEST_LOG_RATE}]
    if layer.link is None:
        raise NoDescriptionError(f"the likelihood {type(layer).__name__} cannot be run inside a page")
    return [] if layer.link == "identity" else [{"kind": layer.link}]


def _units(codec: Codec, weights: _Weights) -> list[Node]:
    """The inverse of the standardisation; the mean in two parts, so that a large offset is added without loss."""
    units = codec.entry_units
    if not isinstance(units, Affine):
        return []
    mean, scale = units.mean.double(), units.scale.double()
    if max(mean.numel(), scale.numel()) > 1:
        mean, scale = (values.expand(codec.space.output_shape) for values in (mean, scale))
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
