"""How well each row comes back from a code."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from wiseale.evaluation.encoded import Encoded
from wiseale.evaluation.image_quality import WINDOW, psnr, ssim
from wiseale.likelihoods import mean_error


@dataclass(frozen=True)
class RowErrors:
    """Errors of every row, float64.

    Attributes:
        nats: −log p(x|z), (n,).
        squared: mean over the observed entries of x of the squared error in the network's units, (n,); of a table's
            categories 1 − p and of its counts the squared difference of log(1 + x) count in its place.
        psnr: peak signal-to-noise ratio in dB, (n,); None where the rows are not images.
        ssim: structural similarity, (n,); None where the rows are not images of at least 11 by 11 pixels.
        x_range: lowest and highest entry of all rows, in the user's units.
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
        shown, shown_hat = (encoded.codec.in_user_units(values) for values in (x, likelihood.mean))
        return (
            -likelihood.log_prob(x).double(),
            mean_error(likelihood.errors(x).double()),
            torch.stack(shown.aminmax()).double(),
            *([psnr(shown, shown_hat)] if images else []),
            *([ssim(shown, shown_hat)] if windows else []),
        )

    nats, squared, ends, *of_images = encoded.by_block(of_block)
    peaks, similar, *_ = *of_images, None, None
    return RowErrors(nats, squared, peaks, similar, (float(ends.min()), float(ends.max())))


@torch.no_grad()
def row_nats(encoded: Encoded, codes: Tensor) -> Tensor:
    """−log p(x|z) alone, (n,), float64."""
    return encoded.by_block(lambda x, part: (-encoded.model.decode(codes[part]).log_prob(x).double(),))[0]
