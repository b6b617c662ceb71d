"""Adam with a step whose overhead is small beside the arithmetic of small networks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn


class Adam(torch.optim.Adam):
    """torch's fused Adam over one group of parameters.

    :meth:`advance` computes the same update as ``step`` but keeps the lists of tensors that ``step`` collects anew each
    time. That saves more than half of Adam's time, about 2 % of a training step of the paper's networks on one thread
    (``python -m bench training``, table "adam").
    """

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, betas: tuple[float, float] = (0.9, 0.999)):
        super().__init__(parameters, lr=lr, betas=betas, fused=True)
        self._moments: tuple[list[Tensor], list[Tensor]] | None = None
        self._count: Tensor | None = None  # steps so far; one for all parameters while every step updates all of them

    @property
    def parameters(self) -> list[nn.Parameter]:
        """The parameters it updates."""
        return self.param_groups[0]["params"]  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Drop all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def advance(self, lr: float) -> None:
        """One step at this learning rate."""
        group = self.param_groups[0]
        group["lr"] = lr
        gradients = [parameter.grad for parameter in self.parameters]
        if self._moments is None or self._count is None or any(gradient is None for gradient in gradients):
            self.step()
            self._collect()
            return
        means, squares = self._moments
        self._count += 1
        torch._fused_adam_(
            *(self.parameters, gradients, means, squares, [], [self._count] * len(means)),  # type: ignore[arg-type]
            lr=lr,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=False,
        )

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step by torch's own code."""
        self._write_count()
        return super().step(closure)  # type: ignore[no-any-return]

    def _collect(self) -> None:
        """Collect the moments and the step count, unless some parameter has had fewer steps than others."""
        states = [self.state[parameter] for parameter in self.parameters if parameter in self.state]
        same = len(states) == len(self.parameters) and len({state["step"].item() for state in states}) == 1
        if same:
            self._moments = [state["exp_avg"] for state in states], [state["exp_avg_sq"] for state in states]
            self._count = states[0]["step"].clone()

    def _write_count(self) -> None:
        """Write the step count to every parameter's state, and forget the collected lists: the state may change now."""
        if self._count is not None:
            for parameter in self.parameters:
                self.state[parameter]["step"].copy_(self._count)
        self._moments, self._count = None, None

    def state_dict(self) -> dict[str, Any]:
        """The state in the form of torch's Adam."""
        self._write_count()
        return super().state_dict()

    def __getstate__(self) -> dict[str, Any]:
        self._write_count()
        return super().__getstate__()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._moments, self._count = None, None

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Replace the state."""
        super().load_state_dict(state_dict)
        self._moments, self._count = None, None
