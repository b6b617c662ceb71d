"""
Your own signals
================

Pulses that differ in two ways, where they are and how wide they are. The auto-encoder sees 64 noisy samples of each and
is asked for two numbers.
"""

# %%
# Signals are arrays of shape (n, channels, length).

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsRegressor

from wiseale import AutoEncoder, ReconstructionDisplay

rng = np.random.default_rng(0)
n, t = 1000, np.linspace(0, 1, 64)
centre, width = rng.uniform(0.25, 0.75, n), rng.uniform(0.03, 0.12, n)
pulses = np.exp(-0.5 * ((t - centre[:, None]) / width[:, None]) ** 2) + 0.05 * rng.normal(size=(n, 64))
X = pulses[:, None].astype(np.float32)
X_train, X_test, factors_train, factors_test = train_test_split(X, np.c_[centre, width], random_state=0)

# %%
# A small convolutional network is enough. Signals are standardised by one mean and one scale, so that their shape stays
# as it is. (30 epochs take a few seconds; leave ``max_epochs`` and ``lr`` out for your own data.)

est = AutoEncoder(latent_dim=2, network="conv1d:channels=8,16,hidden=64", max_epochs=30, lr=4e-3, random_state=0)
est.fit(X_train)
last = est.history_[-1]
print(f"after {est.n_epochs_} epochs: reconstruction {last['train_reconstruction']:.1f} nats per pulse")

# %%
# Unseen pulses (grey) and what comes back from two numbers each: the noise is gone, because it cannot be foretold.

ReconstructionDisplay.from_estimator(est, X_test, n_rows=6)
plt.show()

# %%
# Do the codes know where a pulse is and how wide? Read both from the five nearest training pulses on the map.

reader = KNeighborsRegressor(5).fit(est.transform(X_train), factors_train)
explained = 1 - ((reader.predict(est.transform(X_test)) - factors_test) ** 2).mean(0) / factors_test.var(0)
print(f"variance explained from the codes: centre {explained[0]:.2f}, width {explained[1]:.2f}")

# %%
# **The latent map.** On the left each test pulse at its code, coloured by where it is. On the right what the decoder
# draws at the points of a grid: neighbours on the map are neighbours in shape, and where the left side has a hole, the
# right side shows what was never learned.

mu, sigma = est.posterior(X_test)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
dots = left.scatter(*mu.T, c=factors_test[:, 0], s=18, alpha=0.8, linewidths=0)
figure.colorbar(dots, ax=left, label="centre of the pulse")
left.set(xlabel="$z_1$", ylabel="$z_2$", title="codes of test pulses")

steps = np.linspace(-1.8, 1.8, 9)
grid = np.array([(a, b) for b in steps for a in steps])
for (a, b), decoded in zip(grid, est.inverse_transform(grid)[:, 0], strict=True):
    right.plot(a + 0.38 * (t - 0.5), b + 0.3 * (decoded - 0.5), color="#0072B2", linewidth=1)
right.set(xlabel="$z_1$", ylabel="$z_2$", title="decoded from a grid of codes")
plt.show()

# %%
# New pulses: codes drawn from the prior, decoded. The prior was asked of the codes as a whole, so most of its draws
# fall where there are codes. A smaller ``x_sigma`` makes the prior count less beside the reconstruction: try
# ``likelihood="gaussian:x_sigma=0.2"`` and see the holes grow.

new = est.sample(200)[:, 0]
peaks = new.max(1)
print(f"{np.mean((peaks > 0.7) & (peaks < 1.3)):.0%} of 200 samples have a pulse's height")

# %%
# The same from a file: ``np.save("pulses.npy", X)``, then ``wiseale train pulses.npy --latent-dim 2 --out
# runs/pulses``.
# sphinx_gallery_thumbnail_number = 2
