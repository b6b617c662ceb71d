"""The pictures of a comparison: curves, rate and distortion, reconstructions, samples, paths, latent space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from wiseale.config import parse_spec
from wiseale.evaluation.encoded import Encoded, encode_run
from wiseale.experiments.comparison import Comparison, Result, Summary
from wiseale.figures.curves import training_curves
from wiseale.figures.image_rows import rows_of
from wiseale.figures.posteriors import latent_map, posterior_contours
from wiseale.figures.rate_distortion import rate_distortion
from wiseale.figures.style import save_figure
from wiseale.training.randomness import generator

Values = npt.NDArray[np.float32]

_ROWS = 8
_BATCH_SHOWN = 64
_POINTS_SHOWN = 3000


@dataclass(frozen=True)
class Drawn:
    """A figure on disk and what it shows."""

    path: Path
    caption: str


def draw_all(comparison: Comparison, results: Sequence[Result], summary: Summary) -> list[Drawn]:
    """Every figure that suits the data, from the first seed's runs where single runs are shown."""
    figures = comparison.out / "figures"
    seed = comparison.base.seed
    first = [result for result in results if result.seed == seed]
    drawn = [_curves(figures, first)]
    if (plane := _plane(figures, summary, comparison)) is not None:
        drawn.append(plane)
    encoded = {result.system.name: encode_run(result.path, most=_POINTS_SHOWN) for result in first}
    drawn += [_reconstructions(figures, encoded), _samples(figures, encoded, seed), _interpolations(figures, encoded)]
    if next(iter(encoded.values())).posterior.latent_dim == 2:
        drawn.append(_contours(figures, encoded))
    drawn += _maps(figures, encoded)
    return drawn


def _curves(figures: Path, results: Sequence[Result]) -> Drawn:
    stochastic = {r.system.name: r.metrics for r in results if "elbo" in r.metrics[-1]["train"]}
    path = save_figure(training_curves(stochastic), figures / "training_curves")
    return Drawn(path, "Training: reconstruction error, AEVB KL and ELBO by epoch, nats per observation (one seed).")


def _plane(figures: Path, summary: Summary, comparison: Comparison) -> Drawn | None:
    families: dict[str, list[tuple[float, float, str]]] = {}
    for system in comparison.systems:
        measures = summary.get(system.name, {})
        if "kl_aggregate_mc" in measures:
            point = (max(measures["kl_aggregate_mc"].mean, 0.0), measures["reconstruction"].mean, system.name)
            families.setdefault(parse_spec(system.objective)[0], []).append(point)
    if not families:
        return None
    ordered = {name: sorted(points) for name, points in families.items()}
    figure = rate_distortion(
        {name: [(x, y) for x, y, _ in points] for name, points in ordered.items()},
        {name: [label for _, _, label in points] for name, points in ordered.items()},
    )
    path = save_figure(figure, figures / "rate_distortion")
    return Drawn(path, "Reconstruction against distance of the aggregate posterior from the prior; means over seeds.")


@torch.no_grad()
def _reconstructions(figures: Path, encoded: Mapping[str, Encoded]) -> Drawn:
    some = next(iter(encoded.values()))
    chosen = _spread_rows(some)
    rows: dict[str, Values] = {"input": _shown(some, some.rows.read(chosen))}
    for name, one in encoded.items():
        rows[name] = _shown(one, one.model.decode(one.posterior.mu[chosen]).mean)
    path = save_figure(rows_of(rows), figures / "reconstructions")
    return Drawn(path, "Unseen inputs and their reconstructions from the mean code.")


@torch.no_grad()
def _samples(figures: Path, encoded: Mapping[str, Encoded], seed: int) -> Drawn:
    rows = {}
    for name, one in encoded.items():
        z = one.model.sample_prior(_ROWS, generator(seed, "evaluate", 7))
        rows[name] = _shown(one, one.model.decode(z).mean)
    path = save_figure(rows_of(rows), figures / "prior_samples")
    return Drawn(path, "New data: codes drawn from each model's prior, decoded.")


@torch.no_grad()
def _interpolations(figures: Path, encoded: Mapping[str, Encoded]) -> Drawn:
    some = next(iter(encoded.values()))
    start, end = (int(row) for row in _spread_rows(some)[[1, -2]])
    rows = {}
    for name, one in encoded.items():
        steps = torch.linspace(0, 1, _ROWS)[:, None]
        path_codes = one.posterior.mu[start] * (1 - steps) + one.posterior.mu[end] * steps
        rows[name] = _shown(one, one.model.decode(path_codes).mean)
    path = save_figure(rows_of(rows), figures / "interpolations")
    return Drawn(path, "A straight path in latent space between the codes of two unseen inputs, decoded.")


def _contours(figures: Path, encoded: Mapping[str, Encoded]) -> Drawn:
    codes = {}
    for name, one in encoded.items():
        mu = one.posterior.mu[:_BATCH_SHOWN].numpy()
        codes[name] = (mu, one.posterior.sigma[:_BATCH_SHOWN].numpy() if one.model.stochastic else None)
    path = save_figure(posterior_contours(codes), figures / "posteriors")
    return Drawn(path, "Posteriors of 64 unseen inputs: 1- and 2-σ ellipses over the root of their average density.")


def _maps(figures: Path, encoded: Mapping[str, Encoded]) -> list[Drawn]:
    drawn = []
    for name, one in encoded.items():
        factor = next(iter(one.factors), None)
        if factor is None or one.posterior.latent_dim < 2:
            continue
        order = one.posterior.mu.var(0).argsort(descending=True)[:2].tolist()
        dimensions = sorted(order)
        figure = latent_map(one.posterior.mu.numpy(), np.asarray(one.factors[factor]), factor, dimensions)
        folder = "".join(c if c.isalnum() else "-" for c in name).strip("-")
        path = save_figure(figure, figures / f"latent_map_{folder}")
        drawn.append(Drawn(path, f"{name}: mean codes of {len(one.rows):,} unseen rows, coloured by {factor}."))
    return drawn


def _spread_rows(encoded: Encoded) -> Tensor:
    """Rows that show the variety of the data: spread over the first factor where there is one."""
    n = len(encoded.rows)
    order = np.arange(n)
    if encoded.factors:
        order = np.argsort(np.asarray(next(iter(encoded.factors.values()))), kind="stable")
    return torch.from_numpy(order[np.linspace(0, n - 1, min(_ROWS, n)).astype(int)])


def _shown(encoded: Encoded, x: Tensor) -> Values:
    """x in the user's units, as a picture or signal; a table's row is drawn as a signal."""
    units = encoded.model.units
    values: Values = (x if units is None else units.inverse(x)).numpy()
    return values[:, None] if values.ndim == 2 else values
