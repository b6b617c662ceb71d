"""
Compare methods on equal terms
==============================

One network, one likelihood, one training loop, four objectives. The map shows what each of them does to the posteriors:
the paper's Figure 1 on scikit-learn's digits.
"""

# %%
# The defaults for your own data (a start at PCA, learned noise) help every method so much that they look alike. To
# see the methods themselves, both are switched off here.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import EllipseCollection
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from wiseale import AutoEncoder
from wiseale.errors import CollapseWarning

digits = load_digits()
X_train, X_test, digit_train, digit_test = train_test_split(
    (digits.images[:, None] / 16).astype(np.float32), digits.target, random_state=0
)
settings = {"network": "mlp:start=none", "likelihood": "gaussian:x_sigma=1", "max_epochs": 15, "lr": 2e-3}
systems = {
    "WiSE-ALE, weight 1/M": "wise_ale:prior_weight=paper",
    "WiSE-ALE": "wise_ale",
    "AEVB (VAE)": "aevb",
    "β-VAE, β = 4": "beta_vae:beta=4",
}
warnings.simplefilter("ignore", CollapseWarning)  # β = 4 collapses here, and fit would say so
fitted = {
    name: AutoEncoder(objective, latent_dim=2, random_state=0, **settings).fit(X_train)
    for name, objective in systems.items()
}

# %%
# **Posteriors of unseen digits**, each an ellipse of one standard deviation, coloured by digit; dashed, the prior. From
# left to right they widen and merge. Narrow posteriors keep the image and leave gaps; wide ones fill the prior and
# forget the image. At the weight that the paper writes, 1/M, the prior has almost no effect; β = 4 collapses: every
# digit has the same posterior.

figure, axes = plt.subplots(1, 4, figsize=(12, 3.8), layout="compressed", sharex=True, sharey=True)
colours = plt.get_cmap("tab10")(digit_test[:150])
for ax, (name, est) in zip(axes, fitted.items(), strict=True):
    mu, sigma = est.posterior(X_test[:150])
    ellipses = EllipseCollection(
        2 * sigma[:, 0], 2 * sigma[:, 1], np.zeros(150), units="xy", offsets=mu, offset_transform=ax.transData
    )
    ellipses.set(facecolor=colours, edgecolor=colours, alpha=0.4)
    ax.add_collection(ellipses)
    for radius in (1, 2):
        ax.add_patch(plt.Circle((0, 0), radius, fill=False, linestyle="--", color="0.4", linewidth=0.8))
    error = est.reconstruction_error(X_test).mean()
    ax.set(xlim=(-4, 4), ylim=(-4, 4), aspect="equal", title=f"{name}\nerror {error:.2f}", xlabel="$z_1$")
axes[0].set_ylabel("$z_2$")
plt.show()

# %%
# The numbers behind the picture: the error of unseen digits (their variance is 1), the geometric mean width of a
# posterior, and the mean KL of a posterior from the prior: how much a code says about its image.

for name, est in fitted.items():
    mu, sigma = est.posterior(X_test)
    kl = 0.5 * (mu**2 + sigma**2 - 1 - 2 * np.log(sigma)).sum(1).mean()
    width = np.exp(np.log(sigma).mean())
    print(f"{name:20} error {est.reconstruction_error(X_test).mean():.3f}  width {width:.2f}  mean KL {kl:.2f} nats")

# %%
# One seed and 15 epochs decide nothing. A comparison that does has several seeds, intervals and a report::
#
#     wiseale compare mnist --objectives wise_ale aevb beta_vae:beta=4 beta_vae:beta=1/M --seeds 3 --out comparison
#
# It runs in parallel processes, continues where it stopped when called again, and ends with ``comparison/report.html``.
# What was found at that scale: :doc:`/results/index`, :doc:`/frontier`, and :doc:`/choosing`.
