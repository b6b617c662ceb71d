"""How well observations come back from their codes, and whether the decoder changes gently with the code."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from wiseale.evaluation.case import Case, Draw, Tick
from wiseale.evaluation.encoded import WINDOW, Encoded, RowErrors, row_nats
from wiseale.evaluation.record import Findings
from wiseale.networks.model import Model
from wiseale.spaces import MixedSpace, TableSpace
from wiseale.spaces.features import CellFeatures
from wiseale.spaces.units import Affine

MOST_COLUMNS = 100
"""Columns of a table that are measured one by one; a wider one has too many to read."""

SMOOTHNESS = ("reconstruction_rise", "path_curvature", "path_curvature_median", "path_curvature_paths")
STEP = 0.1
POINTS = 11
PATHS = 500

_SLACK = 1e-4  # of the pixel range: standardised images come back to their own range with rounding
_STILL = 1e-3  # ends of a path that differ by less than this part of their size leave only rounding to look at
_PATHS_AT_ONCE = 32


def reconstruction(case: Case, tick: Tick) -> Findings:
    """−log p(x|z) and mean error of an entry (network's units), from z ~ q(z|x) and from z = mu.

    A row in which no cell was observed has no error and does not count in the mean.
    """
    at_z = case.errors
    tick(0.5)
    at_mu = case.errors_at_mu
    return Findings.of(
        {
            "reconstruction": float(at_z.nats.mean()),
            "mse": float(at_z.squared.nanmean()),
            "reconstruction_at_mu": float(at_mu.nats.mean()),
            "mse_at_mu": float(at_mu.squared.nanmean()),
            "log_jacobian": float(_log_jacobian(case.encoded).mean()),
        }
    )


def _log_jacobian(encoded: Encoded) -> Tensor:
    """log |d x_network / d x_user| of every row, (n,); where no cell can be missing, of one, as all are alike."""
    units, blocks = encoded.model.units, (x for x, _ in encoded.blocks())
    if not encoded.codec.space.missing:
        return units.log_jacobian(next(blocks)[:1])
    return torch.cat([units.log_jacobian(x) for x in blocks])


def image_quality(case: Case, tick: Tick) -> Findings:
    """PSNR (dB) and SSIM of images, in the user's range from 0 to 1."""
    return _quality(case.errors, "") | _quality(case.errors_at_mu, "_at_mu")


def _quality(errors: RowErrors, suffix: str) -> Findings:
    psnr, ssim = f"psnr{suffix}", f"ssim{suffix}"
    low, high = errors.x_range
    if errors.psnr is None:
        return Findings.none((psnr, ssim), "the observations are not images")
    if low < -_SLACK or high > 1 + _SLACK:
        return Findings.none((psnr, ssim), f"pixels go from {low:.4g} to {high:.4g}, not from 0 to 1")
    findings = Findings.of({psnr: float(errors.psnr.mean())})
    if errors.ssim is None:
        return findings | Findings.none((ssim,), f"the images are smaller than the window of {WINDOW} by {WINDOW}")
    return findings | Findings.of({ssim: float(errors.ssim.mean())})


@torch.no_grad()
def columns(case: Case, tick: Tick) -> Findings:
    """From z = mu: RMSE of numbers and counts, accuracy of levels; beside the training mean and most frequent level.

    ``rmse:price`` and ``rmse_baseline:price``, ``accuracy:colour`` and ``accuracy_baseline:colour``; observed cells
    count alone. Where the model does not hold the training mean, as of counts, that of the evaluated rows stands for
    it. Rows that are not a table with named columns have none of these.
    """
    encoded, space = case.encoded, case.encoded.codec.space
    if not isinstance(space, TableSpace) or not 0 < len(space.columns) <= MOST_COLUMNS:
        return Findings({})
    usual, codes, in_user_units = _usual(encoded), encoded.posterior.mu, encoded.codec.in_user_units
    x, x_hat = encoded.by_block(
        lambda x, part: (
            in_user_units(x).double(),
            in_user_units(encoded.model.decode(codes[part]).mean).double(),
        )
    )
    numbers: dict[str, float] = {}
    for i, column in enumerate(space.learned):
        observed = ~x[:, i].isnan()
        if not bool(observed.any()):
            continue
        truth, guess = x[observed, i], x_hat[observed, i]
        if column.has_levels:
            numbers[f"accuracy:{column.name}"] = float((guess.round() == truth).double().mean())
            numbers[f"accuracy_baseline:{column.name}"] = float((truth == usual[i]).double().mean())
        else:
            mean = truth.mean() if usual[i].isnan() else usual[i]
            numbers[f"rmse:{column.name}"] = math.sqrt(float((truth - guess).square().mean()))
            numbers[f"rmse_baseline:{column.name}"] = math.sqrt(float((truth - mean).square().mean()))
    return Findings.of(numbers)


def _usual(encoded: Encoded) -> Tensor:
    """What is guessed of each column without a model, (C,); NaN where the model does not hold it."""
    space, units, features = encoded.codec.space, encoded.model.units, encoded.model.features
    usual = torch.full(space.x_shape, math.nan, dtype=torch.double)
    if isinstance(units, Affine) and units.mean.shape == usual.shape:  # the means of the columns of numbers
        usual = units.mean.double().clone()
    if not isinstance(space, MixedSpace) or not isinstance(features, CellFeatures):
        return usual
    shift = features.shift.cpu()  # of levels, their shares in the training rows
    for i, (column, start) in enumerate(zip(space.columns, space.starts, strict=True)):
        if column.kind == "category":
            usual[i] = float(shift[start : start + column.width].argmax())
        elif column.kind == "binary":
            usual[i] = float(shift[start] > 0.5)
        elif column.is_count:
            usual[i] = math.nan
    return usual


def smoothness(case: Case, tick: Tick) -> Findings:
    """Rise of the reconstruction (nats) when codes move a little, and curvature of decoded straight paths.

    A decoder that ignores the code wins, so read it beside the MSE.
    """
    mu = case.encoded.posterior.mu
    if len(mu) < 2:
        return Findings.none(SMOOTHNESS, "needs at least 2 rows")
    signs = 2.0 * torch.randint(2, mu.shape, generator=case.generator(Draw.MOVE)) - 1
    nats = row_nats(case.encoded, mu + STEP * signs * code_spread(case))
    rise = Findings.of({"reconstruction_rise": float((nats - case.errors_at_mu.nats).mean())})
    tick(0.5)
    if any(column.kind == "category" or column.is_count for column in case.encoded.codec.space.columns):
        # The likeliest level is a step function of the code, and its number means nothing; counts outweigh the rest.
        return rise | Findings.none(SMOOTHNESS[1:], "a table with categories or counts has no curvature")
    ends = torch.randint(len(mu), (2, PATHS), generator=case.generator(Draw.PATHS))
    ends = ends[:, ends[0] != ends[1]]
    curvature = path_curvature(case.encoded.model, mu[ends[0]], mu[ends[1]])
    if len(curvature) == 0:
        return rise | Findings.none(SMOOTHNESS[1:], "the decoder gives the same at both ends of every path")
    numbers = (float(curvature.mean()), float(curvature.median()), len(curvature))
    return rise | Findings.of(dict(zip(SMOOTHNESS[1:], numbers, strict=True)))


def code_spread(case: Case) -> Tensor:
    """s_k = √(mean_i sigma_ik² + Var_i mu_ik), the spread of the codes in each unit, (d_z,)."""
    q = case.encoded.posterior
    variance = q.mu.var(0)
    if case.encoded.model.stochastic:
        variance = variance + q.scale.square().mean(0)
    return variance.sqrt()


@torch.no_grad()
def path_curvature(model: Model, start: Tensor, stop: Tensor) -> Tensor:
    """mean_t ‖x_{t+1} − 2x_t + x_{t−1}‖²·(T−1)⁴/‖x_T − x_1‖² along straight paths between codes (P, d_z).

    x is the decoded mean at T = 11 equally spaced points. Paths whose two ends decode to the same are left out, so
    the result is (at most P,), float64.
    """
    curvatures = []
    steps = torch.linspace(0, 1, POINTS)[:, None, None]
    for a, b in zip(torch.split(start, _PATHS_AT_ONCE), torch.split(stop, _PATHS_AT_ONCE), strict=True):
        codes = torch.lerp(a, b, steps)
        x = model.decode(codes.flatten(0, 1)).mean.double().view(POINTS, len(a), -1)
        bend = (x[2:] - 2 * x[1:-1] + x[:-2]).square().sum(-1).mean(0) * (POINTS - 1) ** 4
        change = (x[-1] - x[0]).square().sum(-1)
        size = 0.5 * (x[-1].square().sum(-1) + x[0].square().sum(-1))
        moving = change > _STILL**2 * size
        curvatures.append(bend[moving] / change[moving])
    return torch.cat(curvatures)
