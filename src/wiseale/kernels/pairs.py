"""Log-sums over all pairs of diagonal Gaussians in C, with their gradient: the hot case of the aggregate bounds."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from wiseale.kernels import build, derivatives
from wiseale.kernels.layout import BLOCK
from wiseale.posterior import SharedRows

_NEGLIGIBLE = torch.finfo(torch.float32).eps ** 2  # pairs of a smaller weight, relative to the largest, are skipped
_MAX_ROWS = 1 << 14  # C keeps two rows of this length on a thread's stack
_MIN_SIGMA = 1e-15  # the square of a smaller one is not a normal float32
_KEPT_PAIRS = 1 << 22  # values of log k stored for the backward pass: 16 MB


def takes(mu: Tensor, sigma: Tensor) -> bool:
    """Whether :func:`log_sum_pairs` accepts these: float32 on a CPU, M a multiple of 16, every sigma² normal."""
    size = len(mu)
    float32 = all(x.device.type == "cpu" and x.dtype == torch.float32 for x in (mu, sigma))
    if not float32 or torch.compiler.is_compiling() or derivatives.in_transform() or build.kernels().library is None:
        return False
    if size % BLOCK or size > _MAX_ROWS:
        return False
    smallest, largest = (bound.item() for bound in sigma.detach().aminmax())
    return smallest > _MIN_SIGMA and largest < 1 / _MIN_SIGMA  # False for NaN too


def log_sum_pairs(
    mu: Tensor,
    sigma: Tensor,
    quadratic: float,
    own: float,
    constant: float = 0.0,
    shared: SharedRows | None = None,
    *,
    formula: derivatives.Formula | None = None,
    keep: int = _KEPT_PAIRS,
) -> Tensor:
    """log Σ_j k(i, j) + constant for every i, (M,); ``formula``, the same in torch, is for second derivatives.

    log k(i, j) = −Σ_c [ quadratic·Δ_c²/v_c + ½ log v_c ] + own·(Σ_c log σ_i + Σ_c log σ_j) with Δ = μ_i − μ_j
    and v = σ_i² + σ_j². All M² values of log k are stored for the backward pass if they are at most ``keep``; otherwise
    they are computed again.

    With ``shared`` this rank computes the sums of its part of the rows and the gradient of these rows; the gradient of
    the others is 0. As k is symmetric, what a row does to the sums of all others is known from its own pairs.
    """
    formula = None if shared is not None else formula
    arguments = (mu, sigma, quadratic, own, constant, shared, formula, keep)
    log_sums: Tensor = _LogSumPairs.apply(*arguments)  # type: ignore[no-untyped-call]
    return log_sums


class _LogSumPairs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        mu: Tensor,
        sigma: Tensor,
        quadratic: float,
        own: float,
        constant: float,
        shared: SharedRows | None,
        formula: derivatives.Formula | None,
        keep: int,
    ) -> Tensor:
        given = mu, sigma
        compiled, (size, d_z) = build.kernels(), mu.shape
        assert compiled.library is not None
        mu, sigma = mu.contiguous(), sigma.contiguous()
        first, stop, _ = (slice(None) if shared is None else shared.part).indices(size)
        columns, log_sums = mu.new_empty((2 * d_z + 1) * size), mu.new_empty(stop - first)
        kept = (stop - first, size) if (stop - first) * size <= keep else 0
        log_k = mu.new_empty(kept)  # an empty tensor's address is null
        compiled.library.wiseale_log_sum_pairs(
            *(mu.data_ptr(), sigma.data_ptr(), d_z, size, first, stop, quadratic, own),
            *(columns.data_ptr(), log_k.data_ptr(), log_sums.data_ptr(), compiled.threads),
        )
        if shared is not None:
            log_sums = shared.gather(log_sums)
        ctx.save_for_backward(*given, columns, log_k, log_sums)
        ctx.quadratic, ctx.own, ctx.rows, ctx.formula = quadratic, own, (first, stop), formula
        return log_sums + constant  # here, because a sum outside would cost autograd another node

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        mu, sigma, columns, log_k, log_sums = ctx.saved_tensors
        if derivatives.is_wanted():
            return *derivatives.of_formula(ctx.formula, mu, sigma, grad), None, None, None, None, None, None
        sigma = sigma.contiguous()
        compiled, (size, d_z), (first, stop) = build.kernels(), sigma.shape, ctx.rows
        assert compiled.library is not None
        grad = grad.contiguous()
        whole = stop - first == size
        grad_mu, grad_sigma = (torch.empty_like(sigma) if whole else torch.zeros_like(sigma) for _ in range(2))
        compiled.library.wiseale_log_sum_pairs_backward(
            *(tensor.data_ptr() for tensor in (sigma, columns, log_k, log_sums, grad)),
            *(d_z, size, first, stop, ctx.quadratic, ctx.own, _NEGLIGIBLE),
            *(grad_mu[first:].data_ptr(), grad_sigma[first:].data_ptr(), compiled.threads),
        )
        return grad_mu, grad_sigma, None, None, None, None, None, None
