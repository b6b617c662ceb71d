"""The scikit-learn estimator: ``AutoEncoder``, and ``load`` for saved models."""

from wiseale.estimator.estimator import AutoEncoder
from wiseale.estimator.loading import load

__all__ = ["AutoEncoder", "load"]
