"""
Find anomalies, and the cells that make them so
===============================================

Train on normal rows alone. What does not look like them is reconstructed badly; the error of every cell says why.
"""

# %%
# Normal rows are the benign tumours of scikit-learn's breast cancer set. A third of them is kept aside, so that the
# model is judged on benign tumours it has not seen, mixed with malignant ones.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from wiseale import AutoEncoder

table = load_breast_cancer(as_frame=True)
X, benign = table.data, table.target == 1
normal, unseen = train_test_split(X[benign], test_size=0.3, random_state=0)
tumours = np.concatenate([unseen, X[~benign]])
is_malignant = np.r_[np.zeros(len(unseen), bool), np.ones((~benign).sum(), bool)]

# %%
# Fit on the normal rows. (A few seconds of training; leave ``max_epochs`` and ``lr`` out for your own data.)

est = AutoEncoder(latent_dim=4, max_epochs=25, lr=3e-3, random_state=0).fit(normal.to_numpy())

# %%
# **Two scores.** ``reconstruction_error`` is the mean squared error of a row in standardised units. ``score_samples``
# is the evidence lower bound in nats, which also asks whether the code itself is a usual one. The area under the ROC
# curve is the share of pairs (one malignant, one benign) that a score puts in the right order.

error, elbo = est.reconstruction_error(tumours), est.score_samples(tumours)
by_error, by_elbo = roc_auc_score(is_malignant, error), roc_auc_score(is_malignant, -elbo)
print(f"malignant found by reconstruction error: {by_error:.3f}, by ELBO: {by_elbo:.3f} (area under the ROC curve)")

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
bins = np.geomspace(error.min(), error.max(), 40)
ax.hist(error[~is_malignant], bins, color="#0072B2", alpha=0.75, label="benign, unseen")
ax.hist(error[is_malignant], bins, color="#D55E00", alpha=0.6, label="malignant")
threshold = np.quantile(est.reconstruction_error(normal.to_numpy()), 0.95)
ax.axvline(threshold, color="black", linestyle="--", linewidth=1)
ax.text(threshold * 0.93, 24, "95 % of the training rows\nlie to the left", ha="right", va="top")
ax.set(xscale="log", xlabel="reconstruction error of a tumour", ylabel="tumours", ylim=(0, 25))
ax.legend()
plt.show()

# %%
# The dashed line is a threshold that needs no labels: flag what is worse than 95 % of the normal rows.
#
# **Which cells?** ``per_column=True`` returns the error of every cell. These are the twelve strangest tumours and the
# ten columns in which they differ most.

cells = est.reconstruction_error(tumours, per_column=True)
strangest = np.argsort(error)[::-1][:12]
columns = np.argsort(np.asarray(cells)[strangest].mean(0))[::-1][:10]
shown = np.sqrt(np.asarray(cells)[np.ix_(strangest, columns)])

figure, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
picture = ax.imshow(shown, cmap="magma_r", aspect="auto", vmax=np.quantile(shown, 0.98))
ax.set_xticks(range(10), table.data.columns[columns], rotation=35, ha="right")
ax.set_yticks(range(12), [f"tumour {row}" for row in strangest])
figure.colorbar(picture, label="error in standard deviations")
plt.show()

# %%
# On the command line: ``wiseale embed RUN tumours.csv -o codes.csv --error`` writes the error of every row beside its
# code.
