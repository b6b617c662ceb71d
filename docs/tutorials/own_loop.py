"""
Use the mathematics in your own loop
====================================

Plain tensors in, plain tensors out. If you have a PyTorch model and a training loop already, one line makes it
WiSE-ALE.
"""

# %%
# A model as anyone would write it: an encoder with two heads, a decoder, and data on two half circles.

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.collections import EllipseCollection
from sklearn.datasets import make_moons
from torch import nn

from wiseale.divergences import kl_aggregate_lower_bound, kl_aggregate_upper_bound, kl_posterior_prior
from wiseale.posterior import Posterior

points, moon = make_moons(1000, noise=0.03, random_state=0)
x_all = torch.tensor((points - points.mean(0)) / points.std(0), dtype=torch.float32)


def train(prior_term, steps=700, seed=0):
    """Train 2 → 2 → 2 with the given prior term; return the posteriors of all points and the terms of each step."""
    torch.manual_seed(seed)
    encoder = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    decoder = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    optimiser = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)

    def posterior_of(x):
        mu, raw = encoder(x).chunk(2, dim=1)
        return Posterior(mu, nn.functional.softplus(raw) + 1e-3)

    history = []
    for _ in range(steps):
        x = x_all[torch.randint(len(x_all), (64,))]
        q = posterior_of(x)
        z = q.sample(torch.randn_like(q.mu))
        reconstruction = (x - decoder(z)).square().sum(1).mean() / (2 * 0.3**2)  # Gaussian, noise 0.3
        prior = prior_term(q)  # <- the only line that differs
        optimiser.zero_grad()
        (reconstruction + prior).backward()
        optimiser.step()
        history.append((reconstruction.item(), prior.item()))
    with torch.no_grad():
        return posterior_of(x_all), np.array(history)


# %%
# **The one line.** AEVB pays for each posterior, WiSE-ALE for the average of the batch's posteriors.

runs = {
    "AEVB": train(lambda q: kl_posterior_prior(q).mean()),
    "WiSE-ALE": train(lambda q: kl_aggregate_upper_bound(q, estimator="jensen")),
}
for name, (q, history) in runs.items():
    print(f"{name}: reconstruction {history[-100:, 0].mean():.2f} nats, mean width {float(q.sigma.mean()):.2f}")

# %%
# Posteriors of 200 points, one standard deviation each, coloured by half circle; dashed, the prior. WiSE-ALE's are
# narrower and still fill the prior together.

figure, axes = plt.subplots(1, 2, figsize=(8.5, 4.2), layout="compressed", sharex=True, sharey=True)
for ax, (name, (q, _)) in zip(axes, runs.items(), strict=True):
    mu, sigma = q.mu[:200].numpy(), q.sigma[:200].numpy()
    ellipses = EllipseCollection(
        2 * sigma[:, 0], 2 * sigma[:, 1], np.zeros(200), units="xy", offsets=mu, offset_transform=ax.transData
    )
    ellipses.set(facecolor=np.where(moon[:200, None], [[0, 0.45, 0.7]], [[0.84, 0.37, 0]]), alpha=0.3)
    ax.add_collection(ellipses)
    for radius in (1, 2):
        ax.add_patch(plt.Circle((0, 0), radius, fill=False, linestyle="--", color="0.4", linewidth=0.8))
    ax.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal", title=name, xlabel="$z_1$")
axes[0].set_ylabel("$z_2$")
plt.show()

# %%
# The aggregate KL has no closed form, but it can be enclosed. All functions are differentiable, work on any device in
# float32 and float64, and need memory in proportion to the batch, not to its square.

q = runs["WiSE-ALE"][0]
low, high = kl_aggregate_lower_bound(q), kl_aggregate_upper_bound(q, estimator="tightest")
print(f"KL of the average posterior from the prior: between {float(low):.2f} and {float(high):.2f} nats")
print(f"mean KL of the single posteriors: {float(kl_posterior_prior(q).mean()):.2f} nats")

# %%
# What these terms mean: :doc:`/concepts`. How tight the bounds are: :doc:`/bounds`. All functions: :doc:`/api`. In a
# distributed loop gather the posteriors of all ranks, with their gradient, before calling them: :doc:`machines`.
