"""A trained model applied to rows, above all to unseen ones, and how well each row comes back from a code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from wiseale.data import Rows
from wiseale.data.dataset import Array
from wiseale.data.defaults import check_values
from wiseale.likelihoods import mean_error
from wiseale.models.inference import Codec
from wiseale.networks.model import Model
from wiseale.posterior import Posterior
from wiseale.randomness import generator
from wiseale.runs.run import Run, Split
from wiseale.spaces.units import interpret

MOST_ROWS = 10_000
BATCH = 512
WINDOW = 11
"""Pixels along a side of the windows of SSIM."""

_WIDTH = 1.5  # standard deviation of the Gaussian window, in pixels
_IMAGES_AT_ONCE = 16  # the moments of more would leave the processor's cache


@dataclass(frozen=True)
class Encoded:
    """A model, rows, and their posteriors.

    Attributes:
        posterior: q(z|x) of every row; without sigma where the encoder is deterministic.
        split: which rows these are: ``"test"``, ``"held out"``, ``"train"`` or ``"all rows"``.
        circular: period of each factor that wraps around.
        unseen: which rows the weights were not learned from, (n,); None where that is all of them.
    """

    codec: Codec
    rows: Rows
    posterior: Posterior
    split: str
    circular: Mapping[str, float] = field(default_factory=dict)
    unseen: npt.NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, codec: Codec, rows: Rows, split: str, circular: Mapping[str, float] | None = None) -> Encoded:
        """Encode every row."""
        parts = [codec.posterior(codec.read(rows.x[part], rows.reading)) for part in _blocks(len(rows))]
        sigmas = [part.sigma for part in parts if part.sigma is not None]
        posterior = Posterior(torch.cat([part.mu for part in parts]), torch.cat(sigmas) if sigmas else None)
        return cls(codec, rows, posterior, split, circular or {})

    @property
    def model(self) -> Model:
        """The model."""
        return self.codec.model

    @property
    def factors(self) -> Mapping[str, Array]:
        """What is known of each row, by name."""
        return self.rows.factors

    def read(self, rows: Tensor) -> Tensor:
        """The rows with these numbers in the network's units."""
        return self.codec.read(self.rows.x[rows.numpy()], self.rows.reading)

    def blocks(self) -> Iterator[tuple[Tensor, slice]]:
        """Blocks of x in the network's units, each with the slice of the rows it holds."""
        for part in _blocks(len(self.rows)):
            yield self.codec.read(self.rows.x[part], self.rows.reading), part

    def by_block(self, compute: Callable[[Tensor, slice], tuple[Tensor, ...]]) -> list[Tensor]:
        """What a function of every block (see :meth:`blocks`) returns, joined."""
        return [torch.cat(column) for column in zip(*(compute(x, part) for x, part in self.blocks()), strict=True)]


def encode_run(run: Run, split: Split = "unseen", most: int = MOST_ROWS) -> Encoded:
    """The run's model applied to rows of its data, or of other data that it was opened with."""
    codec, selection = run.fast_codec, run.rows(split, most)
    check_values(selection.rows, run.settings.likelihood)
    encoded = Encoded.of(codec, binarized(selection.rows, run.settings.seed), selection.split, run.dataset.circular)
    return replace(encoded, unseen=selection.unseen)


def binarized(rows: Rows, seed: int) -> Rows:
    """Rows of a set with dynamic binarisation, drawn once, so that every measure sees the same x; others unchanged."""
    if rows.reading != "dynamic":
        return rows
    draws = generator(seed, "binarize", 0)
    blocks = [interpret(rows.x[part], "dynamic", draws) for part in _blocks(len(rows))]
    return Rows(torch.cat(blocks).to(torch.uint8).numpy(), "values", rows.factors)


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, BATCH):
        yield slice(start, min(start + BATCH, n))


@dataclass(frozen=True)
class RowErrors:
    """Errors of every row, (n,), float64: −log p(x|z), and the mean squared error of its observed entries.

    Squared errors are in the network's units; of a table's categories 1 − p and of its counts the squared difference
    of log(1 + x) count in their place. ``psnr`` (dB) and ``ssim`` exist for images, ``ssim`` for those of at least 11
    by 11 pixels. ``x_range``: lowest and highest entry of all rows, in the user's units.
    """

    nats: Tensor
    squared: Tensor
    psnr: Tensor | None
    ssim: Tensor | None
    x_range: tuple[float, float]


@torch.no_grad()
def row_errors(encoded: Encoded, codes: Tensor) -> RowErrors:
    """Decode one code per row, (n, d_z), and compare."""
    shape = encoded.model.x_shape
    images = len(shape) == 3
    windows = images and min(shape[1:]) >= WINDOW

    def of_block(x: Tensor, part: slice) -> tuple[Tensor, ...]:
        likelihood = encoded.model.decode(codes[part])
        pixels, pixels_hat = (encoded.codec.in_user_units(values) for values in (x, likelihood.mean))
        return (
            -likelihood.log_prob(x).double(),
            mean_error(likelihood.errors(x).double()),
            torch.stack(pixels.aminmax()).double(),
            *([psnr(pixels, pixels_hat)] if images else []),
            *([ssim(pixels, pixels_hat)] if windows else []),
        )

    nats, squared, ends, *of_images = encoded.by_block(of_block)
    peaks, similarities, *_ = *of_images, None, None
    return RowErrors(nats, squared, peaks, similarities, (float(ends.min()), float(ends.max())))


@torch.no_grad()
def row_nats(encoded: Encoded, codes: Tensor) -> Tensor:
    """−log p(x|z) alone, (n,), float64."""
    return encoded.by_block(lambda x, part: (-encoded.model.decode(codes[part]).log_prob(x).double(),))[0]


def psnr(x: Tensor, x_hat: Tensor) -> Tensor:
    """Peak signal-to-noise ratio −10·log10(mean squared error) in dB for a data range of 1, (M,), float64."""
    return -10 * (x - x_hat).flatten(1).double().square().mean(1).log10()


def ssim(x: Tensor, x_hat: Tensor) -> Tensor:
    """Structural similarity (Wang et al. 2004) for a data range of 1, mean over windows and channels, (M,), float64.

    Gaussian windows of 11 by 11 pixels and standard deviation 1.5 that lie wholly inside the image (M, C, H, W);
    moments are the windows' weighted ones, C1 = 0.01², C2 = 0.03².
    """
    down, across = _windows(x.shape[-2]), _windows(x.shape[-1]).T

    def of_images(a: Tensor, b: Tensor) -> Tensor:
        mean_a, mean_b, square_a, square_b, product = down @ torch.stack((a, b, a * a, b * b, a * b)) @ across
        variance_a, variance_b = square_a - mean_a**2, square_b - mean_b**2
        covariance = product - mean_a * mean_b
        light = (2 * mean_a * mean_b + 0.01**2) / (mean_a**2 + mean_b**2 + 0.01**2)
        structure = (2 * covariance + 0.03**2) / (variance_a + variance_b + 0.03**2)
        by_image: Tensor = (light * structure).flatten(1).mean(1)
        return by_image

    pairs = zip(torch.split(x, _IMAGES_AT_ONCE), torch.split(x_hat, _IMAGES_AT_ONCE), strict=True)
    return torch.cat([of_images(a.double(), b.double()) for a, b in pairs])


def _windows(size: int) -> Tensor:
    """Weights of every window along an axis, (size − 10, size): as matrix products far faster than convolutions."""
    distance = torch.arange(size, dtype=torch.float64) - torch.arange(size - WINDOW + 1)[:, None] - WINDOW // 2
    weights = torch.exp(-0.5 * (distance / _WIDTH).square()) * (distance.abs() <= WINDOW // 2)
    return weights / weights.sum(1, keepdim=True)
