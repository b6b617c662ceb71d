"""Second derivatives: a backward pass written by hand has none, and autograd would silently take them for 0."""

from __future__ import annotations

import torch


def is_wanted() -> bool:
    """Whether a backward pass is itself recorded (``create_graph=True``), so that a second derivative may follow."""
    return torch.is_grad_enabled()


def refuse(what: str, remedy: str = "") -> None:
    """Raise where a second derivative is wanted of something that has only a first one."""
    if is_wanted():
        raise RuntimeError(
            f"{what} can be differentiated once: call backward or grad without create_graph=True{remedy}"
        )


def in_transform() -> bool:
    """Whether this runs inside ``torch.func.grad``, ``vmap`` and the like, whose tensors have no memory."""
    return bool(torch._C._are_functorch_transforms_active())
