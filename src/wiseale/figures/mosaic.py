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
