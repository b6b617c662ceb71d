"""Distances between two samples of codes: pure, differentiable functions of tensors (M, d_z); none is in nats.

They use codes alone, so they also apply to deterministic encoders. Memory is O(M²), never O(M²·d_z), and squares of
differences are never expanded into products, which would cancel in float32.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

IMQ_SCALES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Scales of the kernel in the code released with Tolstikhin et al. 2018; the article has the scale 1 alone."""


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """‖x_i − y_j‖² for every pair, (len(x), len(y)).

    >>> squared_distances(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))
    tensor([[25.]])
    """
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist").square()


def imq_kernel(x: Tensor, y: Tensor) -> Tensor:
    """k(x_i, y_j) = Σ_s C_s / (C_s + ‖x_i − y_j‖²), C_s = 2·d_z·s: inverse multiquadratics, (len(x), len(y)).

    2·d_z is the expected squared distance of two draws from N(0, I).

    >>> imq_kernel(torch.zeros(1, 1), torch.zeros(1, 1))  # 1 for each of the seven scales
    tensor([[7.]])
    """
    squares = squared_distances(x, y)
    widths = [2 * x.shape[1] * scale for scale in IMQ_SCALES]
    return torch.stack([width / (width + squares) for width in widths]).sum(0)


def squared_mmd(x: Tensor, y: Tensor) -> Tensor:
    """Unbiased estimate of the squared maximum mean discrepancy under :func:`imq_kernel`, ().

    Within a sample over i ≠ j, across over all pairs; its mean is 0 where both samples follow one distribution, so it
    may be negative. Of a single point the within-term does not exist and is left out.

    >>> squared_mmd(torch.zeros(2, 1), torch.zeros(2, 1))
    tensor(0.)
    """
    return _mean_off_diagonal(imq_kernel(x, x)) + _mean_off_diagonal(imq_kernel(y, y)) - 2 * imq_kernel(x, y).mean()


def sinkhorn_divergence(x: Tensor, y: Tensor, epsilon: float = 0.1, iterations: int = 50) -> Tensor:
    """S_ε(x, y) = OT_ε(x, y) − ½ OT_ε(x, x) − ½ OT_ε(y, y) for the cost C = ‖x_i − y_j‖², ().

    OT_ε = min_π ⟨π, C⟩ + ε·KL(π ‖ uniform) is the entropic value, taken from its dual as mean(f) + mean(g), not the
    sharp ⟨π, C⟩ (Feydy et al. 2019, eqs. 1 and 3). S_ε is 0 where x = y and tends to W₂² as ε → 0. Both samples have M
    points.

    Potentials are found in the log domain while the temperature falls from max C to ε over the first half of the
    iterations. The gradient is that of the dual with the potentials held (envelope theorem): exact at convergence,
    without memory of the iterations.

    >>> x = torch.tensor([[0.0], [1.0]])
    >>> sinkhorn_divergence(x, x + 3).round(decimals=3)  # a shift by 3: W₂² = 9
    tensor(9.)
    """
    if x.shape != y.shape:
        raise ValueError(f"both samples must be (M, d_z), got {tuple(x.shape)} and {tuple(y.shape)}")
    with torch.no_grad():
        across, within = squared_distances(x, y), torch.stack((squared_distances(x, x), squared_distances(y, y)))
        f, g, f_xx, g_yy = _potentials(across, within, epsilon, iterations)
    f = _soft_minimum(squared_distances(x, y.detach()), g, epsilon)
    g = _soft_minimum(squared_distances(y, x.detach()), f.detach(), epsilon)
    f_xx = _soft_minimum(squared_distances(x, x.detach()), f_xx, epsilon)
    g_yy = _soft_minimum(squared_distances(y, y.detach()), g_yy, epsilon)
    return (f - f_xx).mean() + (g - g_yy).mean()


def sinkhorn_cost(x: Tensor, y: Tensor, epsilon: float = 0.1, iterations: int = 50) -> Tensor:
    """The sharp cost ⟨R, C⟩/M, C = ‖x_i − y_j‖², as published by Patrini et al. in 2018, ().

    R = exp(−C/ε) with rows and columns normalised in turn, here in the log domain, so that it becomes doubly
    stochastic; the gradient goes through the iterations and is exact for what is computed. Biased: not 0 at x = y.

    >>> x = torch.tensor([[0.0], [1.0]])
    >>> sinkhorn_cost(x, x, epsilon=1.0)
    tensor(0.2689)
    """
    if x.shape != y.shape:
        raise ValueError(f"both samples must be (M, d_z), got {tuple(x.shape)} and {tuple(y.shape)}")
    cost = squared_distances(x, y)
    log_r = -cost / epsilon
    for _ in range(iterations):
        log_r = log_r - log_r.logsumexp(1, keepdim=True)
        log_r = log_r - log_r.logsumexp(0, keepdim=True)
    return (log_r.exp() * cost).sum() / len(x)


def _mean_off_diagonal(kernel: Tensor) -> Tensor:
    m = len(kernel)
    return (kernel.sum() - kernel.diagonal().sum()) / max(1, m * (m - 1))


def _potentials(
    across: Tensor, within: Tensor, epsilon: float, iterations: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Dual potentials (M,) of the three problems x–y (two of them), x–x and y–y, costs (M, M) and (2, M, M)."""
    f = g = across.new_zeros(len(across))
    own = within.new_zeros(within.shape[:2])
    for temperature in _cooling(across.amax(), epsilon, iterations):
        f = _soft_minimum(across, g, temperature)
        g = _soft_minimum(across.T, f, temperature)
        # x–x and y–y have f = g; taking turns would swing around it, the mean of the two does not
        own = 0.5 * (own + _soft_minimum(within, own, temperature))
    return f, g, own[0], own[1]


def _cooling(hottest: Tensor, epsilon: float, iterations: int) -> Tensor:
    """Temperatures of the iterations: geometrically from the largest cost to ε, then ε, (iterations,)."""
    steps = torch.arange(iterations, device=hottest.device, dtype=hottest.dtype)
    left = (1 - steps / max(1, iterations // 2)).clamp_min(0)
    return epsilon * (hottest / epsilon).clamp_min(1) ** left


def _soft_minimum(cost: Tensor, potential: Tensor, temperature: Tensor | float) -> Tensor:
    """−T log (1/M) Σ_j exp((potential_j − cost_ij)/T), (…, M)."""
    logits = (potential.unsqueeze(-2) - cost) / temperature
    return -temperature * (logits.logsumexp(-1) - math.log(cost.shape[-1]))
