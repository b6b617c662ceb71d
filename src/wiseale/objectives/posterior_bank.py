"""A bank of the most recent posteriors: its aggregate is closer to the dataset's than that of one batch."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from wiseale.divergences import PairwiseBound, kl_bank_mc, kl_bank_upper_bound, log_mean_bank
from wiseale.errors import ConfigError
from wiseale.posterior import Posterior

BOUNDS: dict[str, tuple[PairwiseBound, ...]] = {
    "mc": (),
    "jensen": ("jensen",),
    "bhattacharyya": ("bhattacharyya",),
    "tightest": ("jensen", "bhattacharyya"),
}


class PosteriorBank(nn.Module):
    """The aggregate KL of the newest ``size`` posteriors, including the batch's; only the batch receives gradients.

    Every call replaces the oldest entries by the batch. In training mode the bank keeps it; in evaluation mode the bank
    is left unchanged, so that a held-out batch is measured in the mixture used in training, and repeated calls agree.
    While the bank fills, the mixture has as many components as there are entries.

    Attributes:
        mu: means of the entries, (size, d_z).
        sigma: standard deviations of the entries, (size, d_z).
        level: ℓ_j of each entry when it was stored, one row per analytic bound in use, (bounds, size).
        seen: number of posteriors stored so far, (); the next goes to row ``seen % size``.
    """

    mu: Tensor
    sigma: Tensor
    level: Tensor
    seen: Tensor

    def __init__(
        self, size: int, latent_dim: int, estimator: Literal["jensen", "bhattacharyya", "tightest", "mc"]
    ) -> None:
        super().__init__()
        self.bounds = BOUNDS[estimator]
        self.register_buffer("mu", torch.zeros(size, latent_dim))
        self.register_buffer("sigma", torch.ones(size, latent_dim))
        self.register_buffer("level", torch.zeros(len(self.bounds), size))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self._seen = 0  # the same number: reading it from a GPU would stall each step
        self.register_load_state_dict_post_hook(PosteriorBank._read_seen)  # type: ignore[no-untyped-call]

    def forward(self, posterior: Posterior, z: Tensor) -> Tensor:
        """The aggregate KL of the bank with the chosen estimator, nats, (); ``mc`` uses the given z."""
        seen, size = self._seen, len(self.mu)
        refuse_small_bank(size, len(posterior))
        count = min(size, seen + len(posterior))
        places = (seen + torch.arange(len(posterior), device=self.mu.device)) % size

        def with_batch(stored: Tensor, new: Tensor) -> Tensor:
            return stored[:count].to(new.dtype).index_copy(0, places, new)

        own = posterior.detach()
        bank = Posterior(with_batch(self.mu, own.mu), with_batch(self.sigma, own.sigma))
        stored = [row[:count].to(own.mu.dtype) for row in self.level]
        log_means = [
            log_mean_bank(posterior, bank, places, level, bound)
            for level, bound in zip(stored, self.bounds, strict=True)
        ]
        levels = [with_batch(level, new.detach()) for level, new in zip(stored, log_means, strict=True)]
        if self.training:
            self._keep(bank, levels, seen + len(posterior))
        if not self.bounds:
            return kl_bank_mc(z, bank)
        place = 0
        if len(self.bounds) > 1:  # reads from the device which is the smaller
            values = [_over_the_bank(bank, level, bound) for level, bound in zip(levels, self.bounds, strict=True)]
            place = values.index(min(values))
        return kl_bank_upper_bound(posterior, log_means[place], self.bounds[place])

    @torch.no_grad()
    def _keep(self, bank: Posterior, levels: list[Tensor], seen: int) -> None:
        self.mu[: len(bank)] = bank.mu
        self.sigma[: len(bank)] = bank.sigma
        for row, level in enumerate(levels):
            self.level[row, : len(bank)] = level
        self.seen.fill_(seen)
        self._seen = seen

    def _read_seen(self, _: object) -> None:
        self._seen = int(self.seen)


def _over_the_bank(bank: Posterior, level: Tensor, bound: PairwiseBound) -> float:
    """The bound of the whole bank minus its cross-entropy; "tightest" chooses by it, not by the batch's own."""
    return float(level.mean() - (bank.entropy().mean() if bound == "bhattacharyya" else 0.0))


def refuse_small_bank(size: int, batch_size: int) -> None:
    """Raise if a batch is larger than the bank."""
    if size < batch_size:
        raise ConfigError(f"bank_size must be at least the batch size, got {size} for batches of {batch_size}")
