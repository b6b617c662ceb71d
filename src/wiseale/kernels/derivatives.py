"""Second derivatives: a backward pass written by hand has none, and autograd would silently take them for 0."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from wiseale.posterior import Posterior

Formula = Callable[[Posterior], Tensor]
"""What a fast path computes, but for a constant, as torch differentiates it any number of times."""

_ONCE = "can be differentiated once: call backward or grad without create_graph=True"


def is_wanted() -> bool:
    """Whether a backward pass is itself recorded (``create_graph=True``), so that a second derivative may follow."""
    return torch.is_grad_enabled()


def refuse(what: str, remedy: str = "") -> None:
    """Raise where a second derivative is wanted of something that has only a first one."""
    if is_wanted():
        raise RuntimeError(f"{what} {_ONCE}{remedy}")


def of_formula(formula: Formula | None, mu: Tensor, sigma: Tensor, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The gradients by ``mu`` and ``sigma`` that torch finds for the formula; they can be differentiated again."""
    if formula is None:
        raise RuntimeError(f"a bank, or a batch shared by processes, {_ONCE}")
    inputs = [tensor for tensor in (mu, sigma) if tensor.requires_grad]
    found = iter(torch.autograd.grad(formula(Posterior(mu, sigma)), inputs, grad, create_graph=True))
    return next(found) if mu.requires_grad else None, next(found) if sigma.requires_grad else None


def in_transform() -> bool:
    """Whether this runs inside ``torch.func.grad``, ``vmap`` and the like, whose tensors have no memory."""
    return bool(torch._C._are_functorch_transforms_active())
