"""Adam as the loop calls it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


class Adam(torch.optim.Adam):
    """torch's fused Adam over one group of parameters.

    :meth:`advance` makes the same step as ``step`` without looking everything up again, which takes longer than the
    arithmetic where networks are as small as the paper's.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, betas: tuple[float, float] = (0.9, 0.999)):
        super().__init__(parameters, lr=lr, betas=betas, fused=True)
        self._moments: tuple[list[Tensor], ...] | None = None

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What it changes."""
        return self.param_groups[0]["params"]  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def advance(self, lr: float) -> None:
        """One step at a learning rate."""
        group = self.param_groups[0]
        group["lr"] = lr
        gradients = [parameter.grad for parameter in self.parameters]
        if self._moments is None or any(gradient is None for gradient in gradients):
            self.step()
            self._moments = self._all_moments()
            return
        means, squares, steps = self._moments
        torch._foreach_add_(steps, 1)
        torch._fused_adam_(
            *(self.parameters, gradients, means, squares, [], steps),  # type: ignore[arg-type]
            lr=lr,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=False,
        )

    def _all_moments(self) -> tuple[list[Tensor], ...] | None:
        """Means, mean squares and numbers of steps; None while some parameter has not had a gradient."""
        states = [self.state[parameter] for parameter in self.parameters]
        if not all(states):
            return None
        return tuple([state[name] for state in states] for name in ("exp_avg", "exp_avg_sq", "step"))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Replace the state."""
        super().load_state_dict(state_dict)
        self._moments = None
