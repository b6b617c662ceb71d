"""Initial weights of the layers, chosen by name: every network declares which it starts from (setting ``init``)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

Init = Literal["glorot", "he", "torch", "wae"]

_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d)
_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, *_TRANSPOSED)


@torch.no_grad()
def initialise(network: nn.Module, init: Init) -> None:
    """Draw the weights of every linear and convolutional layer anew; all biases become 0.

    ==========  ==============================================================================
    ``glorot``  U(−a, a) with a² = 6 / (fan_in + fan_out): TensorFlow's default, Glorot & Bengio 2010
    ``he``      N(0, 2 / fan_in), for layers followed by ReLU, He et al. 2015
    ``wae``     N(0, 0.01²), as in the authors' code of the Wasserstein auto-encoder
    ``torch``   PyTorch's defaults: nothing is drawn, biases keep their draws
    ==========  ==============================================================================
    """
    if init == "torch":
        return
    for layer in network.modules():
        if isinstance(layer, _LAYERS) and not layer.weight.is_meta:
            _draw(layer, init)
            if layer.bias is not None:
                layer.bias.zero_()


def _draw(layer: nn.Linear | nn.Conv1d | nn.Conv2d | nn.ConvTranspose1d | nn.ConvTranspose2d, init: Init) -> None:
    if init == "glorot":
        nn.init.xavier_uniform_(layer.weight)
    elif init == "he":
        layer.weight.normal_(0, math.sqrt(2 / _fan_in(layer)))
    else:
        layer.weight.normal_(0, 0.01)


def _fan_in(layer: nn.Module) -> float:
    """Inputs that an output is the weighted sum of; a transposed convolution of stride s has 1/s of its kernel's."""
    assert isinstance(layer, _LAYERS)
    weight: Tensor = layer.weight
    if isinstance(layer, _TRANSPOSED):
        return weight.shape[0] * math.prod(k / s for k, s in zip(layer.kernel_size, layer.stride, strict=True))
    return weight[0].numel()
