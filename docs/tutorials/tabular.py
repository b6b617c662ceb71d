"""
Your own table
==============

From a table of measurements to a map of its rows, in the table's own units. The table is scikit-learn's breast cancer
set: 569 tumours, 30 measurements each. (The examples of this gallery train for a few seconds, so that all of them can
be run whenever the documentation is built. Leave ``max_epochs`` and ``lr`` out for your own data.)
"""

# %%
# Load it as a data frame. A CSV of your own is read by ``pandas.read_csv`` in the same way. The labels are only used to
# colour the map; the auto-encoder never sees them.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from wiseale import AutoEncoder, LatentMapDisplay, TraversalDisplay, load

table = load_breast_cancer(as_frame=True)
X, kind = table.data, np.where(table.target, "benign", "malignant")
X_train, X_test, kind_train, kind_test = train_test_split(X, kind, random_state=0)

# %%
# **Fit.** Columns are standardised inside the model, so there is no need for a scaler. The representation of a fitted
# estimator says what was chosen.

est = AutoEncoder(latent_dim=2, max_epochs=25, lr=3e-3, random_state=0).fit(X_train)
print(est)

# %%
# **The map.** Every point is a tumour that was not trained on; the two coordinates are its code.

LatentMapDisplay.from_estimator(est, X_test, kind_test, factor_name="tumour")
plt.show()

# %%
# **Back to the table.** ``inverse_transform`` returns a data frame with the columns and units of the one that was
# fitted. Two numbers cannot hold thirty measurements exactly; they hold what these have in common.

X_hat = est.inverse_transform(est.transform(X_test))
print(X_hat.loc[:2, ["mean radius", "mean area", "worst texture"]].round(1))

# %%
# **What a unit of the code means**: move it, keep the other, and see by how much every column changes. Colours count
# standard deviations of the column, the numbers are in its own units.

columns = ["mean radius", "mean texture", "mean smoothness", "mean concavity", "radius error", "worst area"]
small = AutoEncoder(latent_dim=2, max_epochs=25, lr=3e-3, random_state=0).fit(X_train[columns])
TraversalDisplay.from_estimator(small, X_test[columns])
plt.show()

# %%
# **Is it better than PCA?** Both try to rebuild a row from two numbers; compare the error on tumours that neither has
# seen, in standard deviations of each column.

scaler = StandardScaler().fit(X_train)
pca = make_pipeline(scaler, PCA(2)).fit(X_train)
for name, rebuilt in (("PCA", pca.inverse_transform(pca.transform(X_test))), ("AutoEncoder", X_hat)):
    error = np.square((np.asarray(rebuilt) - X_test) / scaler.scale_).to_numpy().mean()
    print(f"{name}: mean squared error of unseen rows {error:.3f}")

# %%
# **Holes** need no preparation: the model learns from the cells that are there, and ``impute`` fills the others. Here a
# tenth of all cells is hidden, so that the guesses can be checked, beside the column's median.

hidden = np.random.default_rng(0).random(X.shape) < 0.1
holes = X.mask(hidden)
guesses = {
    "imputed": AutoEncoder(latent_dim=4, max_epochs=25, lr=3e-3, random_state=0).fit(holes).impute(holes),
    "median": SimpleImputer(strategy="median").fit_transform(holes),
}
for name, filled in guesses.items():
    errors = ((np.asarray(filled) - X) / X.std()).to_numpy()[hidden]
    print(f"{name}: error of a hidden cell {np.sqrt(np.square(errors).mean()):.2f} standard deviations")

# %%
# If a hole should rather be an error, say so.

try:
    AutoEncoder(missing="error").fit(holes)
except ValueError as error:
    print("refused:", str(error).splitlines()[0])

# %%
# **Keep it.** A model is a directory without pickle. The command line reads it too:
# ``wiseale embed tumours-model tumours.csv -o codes.csv``.

est.save("tumours-model")
again = load("tumours-model")
assert np.array_equal(again.transform(X_test), est.transform(X_test))

# %%
# The whole way on the command line::
#
#     wiseale train tumours.csv --latent-dim 2 --out runs/tumours
#     wiseale evaluate runs/tumours
#     wiseale explore runs/tumours
#
# Next: :doc:`anomalies` in such a table, or :doc:`the defaults and why </defaults>`.
