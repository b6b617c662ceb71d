"""
Reproduce the paper
===================

Every experiment of the WiSE-ALE paper is one command. The smallest of them, its Figure 4, needs no training and is
computed here from the library's functions: two inputs, two posteriors, and the question how wide they should be.
"""

# %%
# Two posteriors at μ = −1 and μ = +1 with one common σ; for every σ the prior terms of the two methods, and the exact
# KL of the average by a sum over a fine grid of z.

import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.stats import norm

from wiseale.divergences import kl_aggregate_upper_bound, kl_posterior_prior
from wiseale.posterior import Posterior

mu = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
z, dz = np.linspace(-8, 8, 3201, retstep=True)


def average(width):
    """The density of the two posteriors' average at z."""
    return (norm.pdf(z, -1, width) + norm.pdf(z, 1, width)) / 2


widths = np.linspace(0.25, 1.6, 136)
pairs = [Posterior(mu, torch.full_like(mu, width)) for width in widths]
aevb = np.array([float(kl_posterior_prior(q).mean()) for q in pairs])
bound = np.array([float(kl_aggregate_upper_bound(q)) for q in pairs])
exact = np.array([(average(w) * (np.log(average(w) + 1e-300) - norm.logpdf(z))).sum() * dz for w in widths])

# %%
# AEVB asks *each* posterior to equal the prior: its term is smallest at σ = 1, where the two overlap and the decoder
# can hardly tell the inputs apart. WiSE-ALE asks that of their *average*: its term is smallest for narrower posteriors.

for name, values in (("AEVB", aevb), ("WiSE-ALE's bound", bound)):
    best = values.argmin()
    print(f"{name} is smallest at sigma = {widths[best]:.2f}: {values[best]:.3f} nats")

# %%
# Draw it: the two posteriors and their average at each method's favourite width, and both terms against σ.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for ax, name, values in ((axes[0], "AEVB", aevb), (axes[1], "WiSE-ALE", bound)):
    width = widths[values.argmin()]
    ax.fill_between(z, norm.pdf(z), color="0.88", label="prior")
    ax.plot(z, norm.pdf(z, -1, width), color="#0072B2", linewidth=1.2, label="posteriors")
    ax.plot(z, norm.pdf(z, 1, width), color="#0072B2", linewidth=1.2)
    ax.plot(z, average(width), color="#D55E00", linewidth=2, label="their average")
    ax.set(title=f"{name}'s minimum: σ = {width:.2f}", xlabel="$z$", yticks=[], xlim=(-4, 4))
axes[0].legend(frameon=False, fontsize=8)
axes[2].plot(widths, aevb, color="black", label="AEVB: mean KL")
axes[2].plot(widths, bound, color="#D55E00", label="WiSE-ALE: bound")
axes[2].plot(widths, exact, color="#009E73", linestyle=":", label="exact KL of the average")
axes[2].set(xlabel="σ", ylabel="nats", title="the prior term", ylim=(0, 1.6))
axes[2].legend(frameon=False, fontsize=8)
plt.show()

# %%
# **The rest of the paper**, from a rehearsal of minutes to the paper's own scale::
#
#     wiseale reproduce toy --scale smoke --out toy          # the analysis of the bound
#     wiseale reproduce all --scale smoke --out rehearsal    # every experiment, tiny
#     wiseale reproduce sine --scale paper --out paper       # 200,000 waves, 50 epochs
#
# Each call ends with ``report.html``: tables with intervals over seeds, the figures, and the paper's claims, each
# *held*, *not held* or *not decided*. What has been found so far: :doc:`/results/index`; every choice made where the
# paper is silent: :doc:`/deviations`.
