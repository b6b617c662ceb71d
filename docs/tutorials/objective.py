"""
Write your own objective
========================

A method is one small class: what it pays for the reconstruction, what it pays for the prior, and how the two are
weighed. As an example, *free bits* (Kingma et al. 2016): no unit of the code pays for its first λ nats, so that it is
not worth switching off.
"""

# %%
# An objective is a frozen dataclass. Its call gets a :class:`~wiseale.objectives.Batch` (the rows x, their posteriors,
# the drawn codes z and the likelihood) and returns :class:`~wiseale.objectives.Terms` in nats per observation.
# Everything else (networks, loop, early stopping, ``transform``) stays as it is.

import warnings
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from wiseale import AutoEncoder, registry
from wiseale.config import setting
from wiseale.errors import CollapseWarning
from wiseale.objectives import Batch, Objective, Terms


@dataclass(frozen=True)
class FreeBits(Objective):
    """mean_i(−log p(x_i|z_i)) + Σ_k max(λ, mean_i D_KL[q(z_k|x_i) ‖ p(z_k)])."""

    free_nats: float = setting(0.5, "nats of each unit that cost nothing", minimum=0)

    def __call__(self, batch: Batch) -> Terms:
        """The terms for a batch."""
        mu, sigma = batch.posterior.mu, batch.posterior.scale
        kl_of_unit = 0.5 * (mu**2 + sigma**2 - 1 - 2 * sigma.log()).mean(0)
        return Terms(-batch.likelihood.log_prob(batch.x), kl_of_unit.clamp(min=self.free_nats).sum(), weight=1.0)


registry.register("objective", "free_bits", FreeBits)

# %%
# Registered, it is used by its name, with its settings after a colon. Beside it AEVB, which pays for every nat. The
# noise is fixed at a large value here: an invitation to collapse, on which the two differ.

X = (load_digits().images[:, None] / 16).astype(np.float32)
settings = {"network": "mlp:start=none", "likelihood": "gaussian:x_sigma=2", "max_epochs": 15, "lr": 2e-3}
warnings.simplefilter("ignore", CollapseWarning)  # AEVB collapses here, and fit would say so
fitted = {
    name: AutoEncoder(objective, latent_dim=6, random_state=0, **settings).fit(X)
    for name, objective in (("AEVB", "aevb"), ("free bits, λ = 0.5", "free_bits:free_nats=0.5"))
}

# %%
# **How much does each unit say?** Its mean KL from the prior, in nats. A unit at 0 is switched off.

figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for shift, colour, (name, est) in zip((-0.2, 0.2), ("0.6", "#D55E00"), fitted.items(), strict=True):
    mu, sigma = est.posterior(X)
    kl = np.sort(0.5 * (mu**2 + sigma**2 - 1 - 2 * np.log(sigma)).mean(0))[::-1]
    ax.bar(np.arange(6) + shift, kl, width=0.4, color=colour, label=name)
    print(f"{name}: {(kl > 0.1).sum()} of 6 units in use, error {est.reconstruction_error(X).mean():.2f}")
ax.axhline(0.5, color="black", linestyle="--", linewidth=0.8)
ax.set(
    xlabel="unit of the code, sorted", ylabel="mean KL in nats", xticks=range(6), xticklabels=range(1, 7), ylim=(0, 0.8)
)
ax.legend(frameon=False, ncols=2)
plt.show()

# %%
# ``register`` holds for this process: a script that loads a model trained so has to register the class first. For the
# command line (``--objective free_bits:free_nats=0.5``) and comparisons, contribute it: one file in
# ``src/wiseale/objectives/``, one line in the registry and one test file, as ``CONTRIBUTING.md`` says. Tests that
# enumerate the registry then check it at once: gradients, invariance to the order of the batch, resuming, two
# processes.
