"""Log-sums over all pairs of diagonal Gaussians in C, with their gradient: the hot case of the aggregate bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from wiseale.kernels import build, derivatives
from wiseale.kernels.layout import BLOCK

Formula = Callable[[Tensor, Tensor], Tensor]
"""The log-sums as a function of mu and sigma that torch differentiates any number of times."""

_NEGLIGIBLE = torch.finfo(torch.float32).eps ** 2  # pairs of a smaller weight, relative to the largest, are skipped
_MAX_ROWS = 1 << 14  # C keeps two rows of this length on a thread's stack
_MIN_SIGMA = 1e-15  # the square of a smaller one is not a normal float32
_KEPT_PAIRS = 1 << 22  # values of log k stored for the backward pass: 16 MB


def takes(mu: Tensor, sigma: Tensor) -> bool:
    """Whether :func:`log_sum_pairs` accepts these: float32 on a CPU, M at most 16,384, every sigma² normal."""
    float32 = all(x.device.type == "cpu" and x.dtype == torch.float32 for x in (mu, sigma))
    if not float32 or torch.compiler.is_compiling() or derivatives.in_transform() or build.kernels().library is None:
        return False
    if not 0 < len(mu) <= _MAX_ROWS:
        return False
    smallest, largest = (bound.item() for bound in sigma.detach().aminmax())
    return smallest > _MIN_SIGMA and largest < 1 / _MIN_SIGMA  # False for NaN too


def log_sum_pairs(
    mu: Tensor,
    sigma: Tensor,
    quadratic: float,
    own: float,
    constant: float,
    *,
    formula: Formula,
    keep: int = _KEPT_PAIRS,
) -> Tensor:
    """log Σ_j k(i, j) + constant for every i, (M,); ``formula``, the same in torch, is for second derivatives.

    log k(i, j) = −Σ_c [ quadratic·Δ_c²/v_c + ½ log v_c ] + own·(Σ_c log σ_i + Σ_c log σ_j) with Δ = μ_i − μ_j
    and v = σ_i² + σ_j². All M² values of log k are stored for the backward pass if they are at most ``keep``; otherwise
    they are computed again.
    """
    log_sums: Tensor = _LogSumPairs.apply(mu, sigma, quadratic, own, constant, formula, keep)  # type: ignore[no-untyped-call]
    return log_sums


class _LogSumPairs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, mu: Tensor, sigma: Tensor, quadratic: float, own: float, constant: float, formula: Formula, keep: int
    ) -> Tensor:
        inputs = mu, sigma
        compiled, (count, d_z) = build.kernels(), mu.shape
        assert compiled.library is not None
        mu, sigma = _padded(mu.contiguous(), 0.0), _padded(sigma.contiguous(), 1.0)
        size = len(mu)
        columns, log_sums = mu.new_empty((2 * d_z + 1) * size), mu.new_zeros(size)
        log_k = mu.new_empty((size, size) if size * size <= keep else 0)  # an empty tensor's address is null
        compiled.library.wiseale_log_sum_pairs(
            *(mu.data_ptr(), sigma.data_ptr(), d_z, count, size, quadratic, own),
            *(columns.data_ptr(), log_k.data_ptr(), log_sums.data_ptr(), compiled.threads),
        )
        ctx.save_for_backward(*inputs, columns, log_k, log_sums)
        ctx.quadratic, ctx.own, ctx.formula = quadratic, own, formula
        return log_sums[:count] + constant  # here, because a sum outside would cost autograd another node

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        mu, sigma, columns, log_k, log_sums = ctx.saved_tensors
        if derivatives.is_wanted():
            inputs = [x for x, needed in zip((mu, sigma), ctx.needs_input_grad, strict=False) if needed]
            gradients = iter(torch.autograd.grad(ctx.formula(mu, sigma), inputs, grad, create_graph=True))
            return *(next(gradients) if needed else None for needed in ctx.needs_input_grad[:2]), *[None] * 5
        compiled, (count, d_z) = build.kernels(), sigma.shape
        assert compiled.library is not None
        sigma, grad = sigma.contiguous(), _padded(grad.contiguous(), 0.0)
        grad_mu, grad_sigma = torch.empty_like(sigma), torch.empty_like(sigma)
        compiled.library.wiseale_log_sum_pairs_backward(
            *(tensor.data_ptr() for tensor in (sigma, columns, log_k, log_sums, grad)),
            *(d_z, count, len(grad), ctx.quadratic, ctx.own, _NEGLIGIBLE),
            *(grad_mu.data_ptr(), grad_sigma.data_ptr(), compiled.threads),
        )
        return grad_mu, grad_sigma, *[None] * 5


def _padded(rows: Tensor, value: float) -> Tensor:
    """The rows and as many more, of this value, as fill the last vector register of C."""
    missing = -len(rows) % BLOCK
    return F.pad(rows, (0, 0) * (rows.ndim - 1) + (0, missing), value=value) if missing else rows
