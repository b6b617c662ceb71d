"""``AutoEncoder``: the training loop behind scikit-learn's interface."""

from __future__ import annotations

import numbers
import os
import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from wiseale import config
from wiseale.data.dataset import Array
from wiseale.data.defaults import HELD_OUT
from wiseale.errors import CollapseWarning, IgnoredColumnsWarning
from wiseale.estimator.exploring import explore
from wiseale.estimator.fit import fit_array, history_svg, ignored_message
from wiseale.estimator.inputs import (
    ChecksInput,
    InvalidInputError,
    Standardize,
    as_seed,
    as_value_error,
    from_torch,
    positions,
    scores,
)
from wiseale.models.inference import Codec, Numbers
from wiseale.models.model_file import refuse_to_replace, save_model
from wiseale.models.places import push
from wiseale.spaces import TableSpace
from wiseale.spaces.frames import cell_frame, frame_names, library_of, write_filled


class AutoEncoder(ChecksInput, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learn codes for tables (n, features), signals (n, channels, length) or images (n, channels, height, width).

    X may be an array, memory-mapped too, a data frame or a torch tensor. What comes back is in its units; only uint8
    images are read as numbers from 0 to 1, and come back so. What is left at ``"auto"`` is chosen as by
    ``wiseale train``, so that the same data, settings and seed give the same weights.

    Args:
        objective: which system: a name with settings (``"wise_ale:prior_weight=1"``) or an objective.
        latent_dim: size of the code.
        network: ``"auto"`` (``mlp``), or a name with settings (``"conv2d:channels=32,64"``).
        likelihood: ``"auto"`` (Bernoulli if every value is 0 or 1, or 0 or 255 in uint8 images, else Gaussian), or a
            name with settings.
        standardize: by which mean and scale, inside the model: ``"columns"``, ``"global"``, ``"none"``, or ``"auto"``
            (tables by columns, signals and images by one; not with a Bernoulli likelihood).
        batch_size: observations per step; ``"auto"`` is 64, or all if there are fewer.
        max_epochs: passes over the data; ``"auto"`` trains until 800 steps and 5 epochs have brought no better held-out
            loss, and for 30,000 steps at the most.
        lr, max_grad_norm: learning rate of Adam, and the norm to which the gradient is clipped.
        prior_warmup: epochs over which the prior's weight grows from 0 to its value.
        patience: stop after this many epochs without a better held-out loss, and take the best epoch's weights; None
            never stops early, ``"auto"`` does where ``max_epochs`` is ``"auto"``.
        held_out: part of the rows that is not learned from but watched for early stopping; 50,000 rows at the most.
        random_state: an int gives the same result again, to the bit; None draws a seed from the system.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, …
        column_kinds: kinds of a data frame's columns where they are not to be guessed: ``{"price": "number", "colour":
            "category", "visits": "count", "sold": "binary", "id": "ignore"}``.
        missing: ``"learn"`` takes missing cells (NaN, None) of tables as such, ``"error"`` refuses them.
        unseen: a level that ``fit`` has not seen is an ``"error"``, or counts as ``"missing"``, or as ``"other"``: the
            level that ``fit`` then makes of those in fewer than 5 rows (where a column has none, it counts as missing).
        verbose: 1 prints what was chosen and the loss now and then, 2 every epoch; in a notebook (extra ``[notebook]``)
            both show a bar.

    Attributes:
        model_: the trained model (a torch module, in standardised units).
        network_, likelihood_, objective_: complete specs of what was used.
        history_: one record per epoch: each term on the training and held-out rows, nats per observation in
            standardised units; ``pandas.DataFrame(est.history_)`` makes a table of it.
        n_epochs_, best_epoch_, seed_: epochs trained, the one whose weights were kept, the seed; 0, None and 0 where
            a model was loaded without its run.
        x_shape_, n_features_in_: shape of one observation and its first axis, for a table the number of columns.
        feature_names_in_: names of the columns where X had any; another X must have the same.
    """

    def __init__(
        self,
        objective: Any = "wise_ale",
        latent_dim: int = 2,
        *,
        network: Any = "auto",
        likelihood: Any = "auto",
        standardize: str = "auto",
        batch_size: Any = "auto",
        max_epochs: Any = "auto",
        lr: float = 5e-4,
        prior_warmup: float = 0.0,
        max_grad_norm: float | None = None,
        patience: Any = "auto",
        held_out: float = HELD_OUT,
        random_state: Any = None,
        device: str = "auto",
        column_kinds: Any = None,
        missing: str = "learn",
        unseen: str = "error",
        verbose: int = 0,
    ) -> None:
        self.objective = objective
        self.latent_dim = latent_dim
        self.network = network
        self.likelihood = likelihood
        self.standardize = standardize
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.lr = lr
        self.prior_warmup = prior_warmup
        self.max_grad_norm = max_grad_norm
        self.patience = patience
        self.held_out = held_out
        self.random_state = random_state
        self.device = device
        self.column_kinds = column_kinds
        self.missing = missing
        self.unseen = unseen
        self.verbose = verbose

    def fit(self, X: Any, y: object = None) -> Self:
        """Train on X; y is not used."""
        with as_value_error():
            settings = self._settings()
            x, space = self._learned(X)
            standardize = config.convert("standardize", self.standardize, Standardize)
            columns = self._names if x.ndim == 2 else ()
            fitted = fit_array(x, settings, standardize=standardize, columns=columns, cells=space, verbose=self.verbose)
        self._adopt(fitted.codec, fitted.summary)
        self.history_ = fitted.history
        self.n_epochs_ = len(fitted.history)
        self.best_epoch_: int | None = fitted.best_epoch
        self.seed_ = fitted.seed
        if space is not None and (message := ignored_message(space.ignored)):
            warnings.warn(message, IgnoredColumnsWarning, stacklevel=2)
        if fitted.collapse:
            warnings.warn(fitted.collapse, CollapseWarning, stacklevel=2)
        return self

    def transform(self, X: Any) -> Numbers:
        """Codes of X, (n, latent_dim): the posteriors' means."""
        return self._by_blocks(self._rows(X), lambda block: self._codec.encode(block).mu)

    def posterior(self, X: Any) -> tuple[Numbers, Numbers]:
        """Means and standard deviations of q(z|x), each (n, latent_dim)."""
        x = self._rows(X)
        if not self._codec.model_config.stochastic:
            raise InvalidInputError(f"{self.objective_} has a deterministic encoder without sigma: use transform")

        def both(block: Array) -> Numbers:
            codes = self._codec.encode(block)
            return np.stack([codes.mu, np.asarray(codes.sigma)], axis=1)

        stacked = self._by_blocks(x, both)
        return stacked[:, 0], stacked[:, 1]

    def inverse_transform(self, Z: Any) -> Any:
        """Reconstructions E[x|z] of codes (n, latent_dim), (n, *x_shape); fitted on a data frame, one like it.

        Codes in a pandas frame (``set_output(transform="pandas")``) pass their index on.
        """
        check_is_fitted(self)
        z = check_array(from_torch(Z), dtype=[np.float64, np.float32], input_name="Z", estimator=self)
        if z.shape[1] != (latent_dim := self._codec.model.latent_dim):
            raise ValueError(f"Z has {z.shape[1]} columns, but the codes have {latent_dim}")
        return self._codec.space.write(self._by_blocks(z, self._codec.decode), like=Z)

    def impute(self, X: Any, n_draws: int | None = None, *, random_state: Any = None) -> Any:
        """X with its missing cells filled: numbers by their posterior mean, categories by the likeliest level.

        With ``n_draws`` a list of that many tables, each with the missing cells drawn from p(missing|observed), for
        multiple imputation; the spread between them shows how sure the model is. Observed cells stay as they are.
        """
        with as_value_error():
            x = self._cells(X, missing=True)
            if x.ndim != 2:
                raise InvalidInputError("impute fills tables, and X holds signals or images")
            codec = self._codec
            if n_draws is None:
                return self._filled(X, self._by_blocks(x, codec.impute, np.dtype(np.float64)))
            if n_draws < 1:
                raise InvalidInputError(f"n_draws must be at least 1, got {n_draws}")
            if not codec.space.missing:
                raise InvalidInputError("n_draws needs a model fitted on rows with missing cells: leave it out")
            seed = self.seed_ if random_state is None else as_seed(random_state)
            parts = [codec.draw_missing(x[part], n_draws, seed, part.start) for part in self._codec.blocks(len(x))]
            return [self._filled(X, np.concatenate(blocks)) for blocks in zip(*parts, strict=True)]

    def _filled(self, X: Any, cells: Array) -> Any:
        """X with its missing cells taken from these, as it came."""
        space = self._codec.space
        if isinstance(space, TableSpace) and library_of(X) and (space.frame or space.missing):
            return write_filled(X, space.columns, positions(X, space), cells)
        return space.write(cells)

    def reconstruction_error(self, X: Any, *, per_column: bool = False) -> Any:
        """How badly each row is reconstructed from its mean code, (n,): large for rows unlike the training data.

        The mean over the row's observed entries of (x − x_hat)², in standardised units, so that every column counts
        alike; for a category or binary column 1 − p(x|z), for a count the squared difference of log(1 + x). With
        ``per_column`` the error of every cell, (n, columns), NaN where it is missing.
        """
        x = self._rows(X)
        if per_column:
            if x.ndim != 2:
                raise InvalidInputError("per_column is for tables, and X holds signals or images")
            space = self._codec.space
            known = isinstance(space, TableSpace) and space.named  # not where it was fitted on an array
            names = space.names if known or not library_of(X) else frame_names(X)
            return cell_frame(X, names, self._by_blocks(x, self._codec.cell_errors))
        return self._by_blocks(x, lambda block: np.asarray(self._codec.encode(block, error=True).error))

    @available_if(scores)  # type: ignore[untyped-decorator]
    def score_samples(self, X: Any) -> Numbers:
        """ELBO of each row, (n,), in nats of X's own units; 16 fixed draws of epsilon serve every row."""
        x = self._rows(X)
        with as_value_error():
            return self._by_blocks(x, self._codec.elbo, dtype=np.dtype(np.float64))

    @available_if(scores)  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: object = None) -> float:
        """Mean ELBO in nats per observation; y is not used."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, *, random_state: Any = None, noise: bool = False) -> Any:
        """New observations, (n_samples, *x_shape): E[x|z] for z of the prior, or with ``noise`` draws of p(x|z).

        Without a ``random_state`` the seed of training is used: calls with one n return the same.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, numbers.Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number of at least 1, got {n_samples!r}")
        seed = self.seed_ if random_state is None else as_seed(random_state)
        return self._codec.space.write(np.concatenate(list(self._codec.sample(n_samples, seed, noise=noise))))

    def explore(
        self,
        X: Any,
        labels: Any = None,
        *,
        html: str | os.PathLike[str] | None = None,
        widget: bool = False,
        port: int = 0,
        browser: bool = True,
    ) -> Any:
        """Open the latent-space explorer on X in the browser until Ctrl-C, or write it to the file ``html``.

        ``widget=True`` returns it for a notebook instead (extra ``[notebook]``); ``selected`` holds the selected rows.
        ``labels`` colour the map: one value for each row, or several by name (``{"class": y, "age": ages}``).
        """
        x = self._rows(X)
        with as_value_error():
            path = None if html is None else Path(html)
            return explore(self._codec, x, labels, html=path, widget=widget, port=port, browser=browser)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model directory, without pickle; :func:`wiseale.load` and the command line read it."""
        check_is_fitted(self)
        directory = Path(path).expanduser()
        refuse_to_replace(directory)
        save_model(directory, self._codec.model, self._codec.model_config)

    def push_to_hub(
        self, repo: str, *, private: bool = False, message: str = "Upload a wiseale model", token: str | None = None
    ) -> str:
        """Upload the model and its card to ``owner/name`` on the Hugging Face Hub (extra ``[hub]``).

        Returns ``hf://owner/name@commit``, from which :func:`wiseale.load` loads exactly this model. Without a
        ``token`` the one of ``hf auth login`` is used.
        """
        check_is_fitted(self)
        codec = self._codec
        return push(repo, codec.model, codec.model_config, private=private, message=message, token=token)

    @property
    def model_(self) -> Any:
        """The trained model."""
        return self._codec.model

    @property
    def _n_features_out(self) -> int:
        return int(self._codec.model.latent_dim)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_codec")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = self.missing == "learn"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = str(super().__repr__(N_CHAR_MAX))
        if not self.__sklearn_is_fitted__():
            return text
        return f"{text}\n# fitted on {self._summary}\n# used: {self.objective_}, {self.network_}, {self.likelihood_}"

    def _html_repr(self) -> str:
        """scikit-learn's diagram, for a fitted estimator with the curves of its terms."""
        diagram = str(super()._html_repr())
        return diagram + history_svg(self.history_) if self.__sklearn_is_fitted__() else diagram

    def _rows(self, X: Any) -> Array:
        with as_value_error():
            return self._cells(X)

    def _adopt(self, codec: Codec, summary: str) -> None:
        """Be fitted with this model."""
        self._codec = codec
        self._summary = summary
        used = codec.model_config
        self.objective_, self.network_, self.likelihood_ = used.objective, used.network, used.likelihood
        self.x_shape_ = codec.space.x_shape
