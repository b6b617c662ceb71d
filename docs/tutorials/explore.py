"""
Explore a latent space in the browser
=====================================

People understand a latent space by moving through it. One line writes a page on which the code under the cursor is
decoded while you move, and that you can mail to somebody.
"""

# %%
# Any fitted estimator will do; here two numbers for each of scikit-learn's digits.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from wiseale import AutoEncoder, LatentMapDisplay

digits = load_digits()
X = (digits.images[:, None] / 16).astype(np.float32)
est = AutoEncoder(latent_dim=2, max_epochs=25, lr=2e-3, random_state=0).fit(X)

# %%
# **One line.** Without ``html`` the page opens in your browser and can also encode rows that you drop on it
# (``pip install 'wiseale[explore]'``). With ``html`` it is one file that needs neither server nor network.

est.explore(X, {"digit": digits.target}, html="digits.html")
# sphinx_gallery_thumbnail_path = 'figures/explorer.png'

# %%
# .. raw:: html
#
#     <iframe src="../digits.html" title="The explorer with digits" class="explorer" loading="lazy"></iframe>
#     <p><a href="../digits.html">Open it in a window of its own</a></p>
#
# Move the cursor over the map, or use the arrow keys. Click to pin a code; two pins make a path to play. *Posteriors*
# shows how sure the model is of each row, *Aggregate* and *Prior* whether the average of the posteriors fills the
# prior: where the solid lines leave the dashed ones, samples come from places without data.
#
# **The static version**, for a paper: displays in the style of scikit-learn.

LatentMapDisplay.from_estimator(est, X, digits.target, factor_name="digit")
plt.show()

# %%
# From the command line a run knows its own data, and up to four runs are shown side by side with linked selections::
#
#     wiseale explore runs/first
#     wiseale explore runs/first runs/second
#     wiseale explore comparison/
#
# All controls and keys: :doc:`/explorer`.
