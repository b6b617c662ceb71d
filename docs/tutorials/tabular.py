"""Codes and anomaly scores for a table.

The table is scikit-learn's breast cancer set: 569 tumours, 30 measurements each, in very different units.
"""

# %%
# Load it. The labels (0 malignant, 1 benign) are only used to judge the result; the auto-encoder never sees them.

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from wiseale import AutoEncoder, load

X, y = load_breast_cancer(return_X_y=True)

# %%
# Missing values are part of the data: the model learns from the cells that are there, and ``impute`` fills the others.
# Here a tenth of all cells is hidden, so that the guesses can be checked, beside the column's median. (25 epochs keep
# this page quick; without ``max_epochs`` training goes on until it no longer helps.)

settings = {"max_epochs": 25, "lr": 3e-3, "random_state": 0}
hidden = np.random.default_rng(0).random(X.shape) < 0.1
holes = np.where(hidden, np.nan, X)
guesses = {
    "imputed": AutoEncoder(latent_dim=4, **settings).fit(holes).impute(holes),
    "median": SimpleImputer(strategy="median").fit_transform(holes),
}
for name, filled in guesses.items():
    errors = ((filled - X) / X.std(0))[hidden]
    print(f"{name}: error of a hidden cell {np.sqrt(np.square(errors).mean()):.2f} standard deviations")

# %%
# If a hole should rather be an error, say so. The error is scikit-learn's own.

try:
    AutoEncoder(missing="error").fit(holes)
except ValueError as error:
    print("refused:", str(error).splitlines()[0])

# %%
# Columns are standardised inside the model, so there is no need for a scaler, and what comes back is in the table's own
# units. The representation of a fitted estimator tells what was chosen.

est = AutoEncoder(latent_dim=2, **settings).fit(X)
print(est)
codes = est.transform(X)
X_hat = est.inverse_transform(codes)
print("mean area of the first tumour:", X[0, 3], "reconstructed:", X_hat[0, 3].round(1))

# %%
# Do two numbers keep what matters? A nearest-neighbour classifier on the codes answers, beside PCA with as many
# components. Both are fitted anew on each fold's training part.

judge = KNeighborsClassifier(5)
ours = cross_val_score(make_pipeline(AutoEncoder(latent_dim=2, **settings), judge), X, y, cv=5).mean()
pca = cross_val_score(make_pipeline(StandardScaler(), PCA(2), judge), X, y, cv=5).mean()
print(f"accuracy from 2 codes: {ours:.3f}; from 2 principal components: {pca:.3f}")

# %%
# **Anomalies.** Train on benign tumours alone. What does not look like them is reconstructed badly
# (``reconstruction_error``) and has a low evidence lower bound (``score_samples``, in nats). A malignant tumour should
# have a larger error than a benign one that was not trained on; the area under the ROC curve is the share of such pairs
# in the right order, 0.5 for a guess.

benign, malignant = X[y == 1], X[y == 0]
seen, unseen = train_test_split(benign, test_size=0.3, random_state=0)
normal = AutoEncoder(latent_dim=4, **settings).fit(seen)
tumours = np.concatenate([unseen, malignant])
is_malignant = np.r_[np.zeros(len(unseen)), np.ones(len(malignant))]
by_error = roc_auc_score(is_malignant, normal.reconstruction_error(tumours))
by_elbo = roc_auc_score(is_malignant, -normal.score_samples(tumours))
print(f"malignant found by reconstruction error: {by_error:.3f}, by ELBO: {by_elbo:.3f} (area under the ROC curve)")

# %%
# A model is a directory without pickle. The command line reads it too:
# ``wiseale embed tumours-model tumours.npy -o codes.csv --error``.

normal.save("tumours-model")
again = load("tumours-model")
assert np.array_equal(again.transform(unseen), normal.transform(unseen))
