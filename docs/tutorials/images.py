"""
Your own images
===============

A map of handwritten digits, and what lies between them. The images are scikit-learn's: 1,797 digits of 8 × 8 pixels.
"""

# %%
# Images are arrays of shape (n, channels, height, width). For a folder or a ``.zip`` of image files the command line is
# quicker: ``wiseale train photos/:size=64 --latent-dim 8 --out runs/photos``.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from wiseale import AutoEncoder, LatentMapDisplay, ReconstructionDisplay

digits = load_digits()
X = (digits.images[:, None] / 16).astype(np.float32)
X_train, X_test, digit_train, digit_test = train_test_split(X, digits.target, random_state=0)

# %%
# Fit two numbers per image. (25 epochs take about three seconds of one core. Leave ``max_epochs`` and ``lr`` out, and
# training goes on for as long as it helps.)

est = AutoEncoder(latent_dim=2, max_epochs=25, lr=2e-3, random_state=0).fit(X_train)
print(est)

# %%
# **The map** of unseen digits. The labels colour it; they were not used in training.

LatentMapDisplay.from_estimator(est, X_test, digit_test, factor_name="digit")
plt.show()

# %%
# **Originals above, reconstructions below.** Two numbers keep the digit and its slant; eight would keep much more.

ReconstructionDisplay.from_estimator(est, X_test, digit_test, n_rows=10)
plt.show()

# %%
# **What lies between.** Decode a grid of codes. Its points are spaced by the prior's probability, so that every cell is
# equally likely when new images are drawn.

steps = norm.ppf(np.linspace(0.03, 0.97, 15))
codes = np.array([(a, b) for b in steps[::-1] for a in steps])
decoded = est.inverse_transform(codes)[:, 0].reshape(15, 15, 8, 8)
figure, ax = plt.subplots(figsize=(6, 6), layout="constrained")
ax.imshow(decoded.transpose(0, 2, 1, 3).reshape(120, 120), cmap="gray_r", vmin=0, vmax=1)
ax.set(xticks=[], yticks=[], xlabel="$z_1$", ylabel="$z_2$")
plt.show()

# %%
# **Sharper.** More numbers per image cost nothing but the picture of the map.

sharper = AutoEncoder(latent_dim=8, max_epochs=25, lr=2e-3, random_state=0).fit(X_train)
for model, name in ((est, "2 codes"), (sharper, "8 codes")):
    print(
        f"{name}: mean squared error of unseen digits {model.reconstruction_error(X_test).mean():.2f} (variance is 1)"
    )
# sphinx_gallery_thumbnail_number = 3
