"""
Choose settings by cross-validation
===================================

``AutoEncoder`` is a scikit-learn estimator, so scikit-learn's own tools choose its settings: a grid search by the
ELBO, and one by what the codes are for.
"""

# %%
# Scikit-learn's handwritten digits, as rows of 64 numbers.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from wiseale import AutoEncoder

X, digit = load_digits(return_X_y=True)
X_train, X_test, digit_train, digit_test = train_test_split(X[:600], digit[:600], random_state=0)

# %%
# **By the ELBO.** ``score`` is the mean ELBO of rows, in nats: a lower bound on the log density that the model gives to
# rows it has not seen. It does not need labels, and a larger code is only chosen if it pays.

sizes = [1, 2, 4, 8]
est = AutoEncoder(max_epochs=8, lr=3e-3, random_state=0)
search = GridSearchCV(est, {"latent_dim": sizes}, cv=2).fit(X_train)
for size, elbo in zip(sizes, search.cv_results_["mean_test_score"], strict=True):
    print(f"latent_dim {size}: ELBO {elbo:.1f}")
print("chosen by ELBO:", search.best_params_)

# %%
# Every setting can be searched, the objective and its settings included, because they are written as text: for
# instance ``{"objective": ["aevb", "wise_ale", "wise_ale:prior_weight=1/4"]}``. But compare ELBOs only between models
# that have one on the same rows; for anything else choose by what the codes are for.
#
# **By the task.** In a pipeline the whole of it is fitted in every fold, so no row of a validation fold has shaped the
# codes it is judged by.

pipeline = make_pipeline(AutoEncoder(max_epochs=8, lr=3e-3, random_state=0), KNeighborsClassifier())
by_task = GridSearchCV(pipeline, {"autoencoder__latent_dim": sizes}, cv=2).fit(X_train, digit_train)
print("chosen by the task:", by_task.best_params_)
print(f"unseen digits recognised: {by_task.score(X_test, digit_test):.2f}")

# %%
# Both curves beside each other, with the spread between folds:

figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for ax, found, name in zip(axes, (search, by_task), ("ELBO (nats)", "digits recognised"), strict=True):
    mean, spread = found.cv_results_["mean_test_score"], found.cv_results_["std_test_score"]
    ax.errorbar(np.arange(len(sizes)), mean, spread, marker="o", capsize=3)
    ax.set(xticks=np.arange(len(sizes)), xticklabels=sizes, xlabel="size of the code", ylabel=name)
plt.show()

# %%
# For many settings, each trained to its end, ``wiseale search`` stops unpromising trials early and can be continued
# after an interruption.
