"""Join small images into one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float32]


def mosaic(images: Values, gap: int = 1) -> Values:
    """Join images (rows, columns, 1 or 3, H, W) in [0, 1] into one (height, width, 3), with white gaps between them.

    >>> mosaic(np.zeros((2, 3, 1, 28, 28), np.float32)).shape
    (57, 86, 3)
    """
    rows, columns, channels, height, width = images.shape
    colours = np.clip(images if channels == 3 else np.repeat(images[:, :, :1], 3, 2), 0, 1)
    padded = np.pad(colours, [(0, 0)] * 3 + [(0, gap)] * 2, constant_values=1)
    whole = padded.transpose(0, 3, 1, 4, 2).reshape(rows * (height + gap), columns * (width + gap), 3)
    return whole[: len(whole) - gap, : whole.shape[1] - gap] if gap else whole


def as_pixels(x: Values, like: Values | None = None) -> Values:
    """Images scaled to [0, 1]: unchanged if ``like`` (by default x) lies there, else by the smallest and largest of it.

    >>> as_pixels(np.array([0, 100, 200], np.float32)).tolist()
    [0.0, 0.5, 1.0]
    """
    like = x if like is None else like
    low, high = float(like.min()), float(like.max())
    if low >= 0 and high <= 1:
        return x
    return (x - low) / (high - low or 1.0)
